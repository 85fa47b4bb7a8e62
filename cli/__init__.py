"""The command `slotkeeper`: one module a group of commands, and what they share.

- `options`: the options that all commands take, before the subcommand or after it;
- `opening`: from options to a store or a client, and the embedded file where no database is named;
- `output`: data on stdout (a table for people, one JSON document for programs), the rest on stderr;
- `exits`: every error, its one line and its exit code.

Nothing here decides what the other packages decide. Each command imports what it needs when it runs, so that help is
there at once: the driver alone takes longer to import than a help text may.
"""
