"""A parser of the CQL that clients of a lock table write: INSERT, UPDATE, DELETE, SELECT, USE, and DDL by its name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final, TypeVar

from .lexer import END, CqlSyntaxError, Token, tokenize
from .statements import Constant, CqlInvalid, Marker, Parsed, Relation, Several, Term
from .tables import BIGINT, INT, Catalog, Column, CqlType, Table, cql_type

T = TypeVar("T")

_OPERATORS: Final = ("=", "<", ">", "<=", ">=", "!=")
_DDL: Final = ("create", "alter", "drop", "truncate", "grant", "revoke")


def parse(cql: str, catalog: Catalog, keyspace: str = "") -> Parsed:
    """Parse one statement; names without a keyspace belong to `keyspace`."""
    return _Parser(cql, catalog, keyspace).statement()


class _Tokens:
    """The tokens that are left, and the questions a parser asks about them."""

    def __init__(self, cql: str) -> None:
        self._tokens = tokenize(cql)
        self._at = 0

    def peek(self, ahead: int = 0) -> Token:
        at = self._at + ahead
        return self._tokens[at] if at < len(self._tokens) else END

    def next(self) -> Token:
        token = self.peek()
        self._at += 1
        return token

    def accept(self, *words: str) -> bool:
        if any(self.peek(ahead).word != word for ahead, word in enumerate(words)):
            return False
        self._at += len(words)
        return True

    def expect(self, *words: str) -> None:
        if not self.accept(*words):
            raise CqlSyntaxError(f"line 1:0 mismatched input '{self.peek().text}' expecting {' '.join(words).upper()}")

    def name(self) -> str:
        token = self.next()
        if token.kind not in ("word", "quoted"):
            raise CqlSyntaxError(f"line 1:0 no viable alternative at input '{token.text}'")
        return token.name

    def many(self, item: Callable[[], T], separator: str = ",") -> list[T]:
        items = [item()]
        while self.accept(separator):
            items.append(item())
        return items

    def balanced(self) -> str:
        """Take what stands in parentheses, others inside it included."""
        self.expect("(")
        inner = ""
        while not self.accept(")"):
            if self.peek() is END:
                self.expect(")")
            inner += f"({self.balanced()})" if self.peek().text == "(" else self.next().name
        return inner

    def enclosed(self, item: Callable[[], T], brackets: str = "()") -> list[T]:
        self.expect(brackets[0])
        items = [] if self.peek().text == brackets[1] else self.many(item)
        self.expect(brackets[1])
        return items


class _Parser:
    def __init__(self, cql: str, catalog: Catalog, keyspace: str) -> None:
        self._tokens = _Tokens(cql)
        self._catalog = catalog
        self._keyspace = keyspace
        self._parsed = Parsed(cql, self._tokens.next().word)

    def statement(self) -> Parsed:
        verb = self._parsed.verb
        if verb in _DDL:
            return self._parsed
        if verb not in ("insert", "update", "delete", "select", "use"):
            raise CqlSyntaxError(f"line 1:0 no viable alternative at input '{verb}'")
        getattr(self, f"_{verb}")()
        self._tokens.accept(";")
        if self._tokens.peek() is not END:
            raise CqlSyntaxError(f"line 1:0 extraneous input '{self._tokens.peek().text}' expecting EOF")
        return self._parsed

    # --- the statements -----------------------------------------------------------------------------------------

    def _use(self) -> None:
        self._parsed.target = self._tokens.name()

    def _insert(self) -> None:
        self._tokens.expect("into")
        self._table()
        names = self._tokens.enclosed(self._tokens.name)
        self._tokens.expect("values")
        waiting = iter(names)
        terms = self._tokens.enclosed(lambda: self._term(self._column(next(waiting))))
        self._parsed.assignments = dict(zip(names, terms, strict=True))
        if self._tokens.accept("if", "not", "exists"):
            self._parsed.exists = False
        self._using()

    def _update(self) -> None:
        self._table()
        self._using()
        self._tokens.expect("set")
        self._parsed.assignments = dict(self._tokens.many(self._assignment))
        self._where()
        self._if()

    def _delete(self) -> None:
        if self._tokens.peek().word != "from":
            self._parsed.deleted = self._tokens.many(self._tokens.name)
        self._tokens.expect("from")
        self._table()
        self._using()
        self._where()
        self._if()

    def _select(self) -> None:
        self._tokens.accept("distinct")
        selectors = self._tokens.many(self._selector)
        self._tokens.expect("from")
        table = self._table()
        self._parsed.selection = [column for selector in selectors for column in selector(table)]
        self._where()
        if self._tokens.accept("order", "by"):
            self._tokens.many(lambda: (self._tokens.name(), self._tokens.accept("asc") or self._tokens.accept("desc")))
        if self._tokens.accept("limit"):
            self._parsed.limit = self._term(Column("[limit]", INT))
        self._tokens.accept("allow", "filtering")

    # --- their parts --------------------------------------------------------------------------------------------

    def _table(self) -> Table:
        keyspace, name = self._keyspace, self._tokens.name()
        if self._tokens.accept("."):
            keyspace, name = name, self._tokens.name()
        if not keyspace:
            raise CqlInvalid("No keyspace has been specified. USE a keyspace, or explicitly specify keyspace.tablename")
        table = self._catalog.find(keyspace, name)
        if table is None:
            missing = f"table {name}" if keyspace in self._catalog.keyspaces else f"keyspace {keyspace}"
            raise CqlInvalid(f"{missing} does not exist")
        self._parsed.table = table
        return table

    def _column(self, name: str) -> Column:
        return _column_of(self._parsed.table, name)

    def _using(self) -> None:
        if not self._tokens.accept("using"):
            return
        while True:
            if self._tokens.accept("ttl"):
                self._parsed.ttl = self._term(Column("[ttl]", INT))
            else:
                self._tokens.expect("timestamp")
                self._term(Column("[timestamp]", BIGINT))
            if not self._tokens.accept("and"):
                return

    def _assignment(self) -> tuple[str, Term]:
        column = self._column(self._tokens.name())
        self._tokens.expect("=")
        return column.name, self._term(column)

    def _where(self) -> None:
        if self._tokens.accept("where"):
            self._parsed.where = self._tokens.many(self._relation, "and")

    def _if(self) -> None:
        if not self._tokens.accept("if"):
            return
        if self._tokens.accept("exists"):
            self._parsed.exists = True
        else:
            self._parsed.conditions = self._tokens.many(self._relation, "and")

    def _relation(self) -> Relation:
        is_tuple = self._tokens.peek().text == "("
        names = self._tokens.enclosed(self._tokens.name) if is_tuple else [self._tokens.name()]
        columns = [self._column(name) for name in names]
        operator = self._tokens.next().word
        if operator not in (*_OPERATORS, "in"):
            raise CqlSyntaxError(f"line 1:0 no viable alternative at input '{operator}'")
        item = self._tuple_of(columns) if is_tuple else self._item_of(columns[0])
        return Relation(tuple(names), operator, self._in(columns, item) if operator == "in" else item())

    def _item_of(self, column: Column) -> Callable[[], Term]:
        return lambda: self._term(column)

    def _tuple_of(self, columns: list[Column]) -> Callable[[], Term]:
        def item() -> Term:
            waiting = iter(columns)
            return Several(tuple(self._tokens.enclosed(lambda: self._term(next(waiting)))))

        return item

    def _in(self, columns: list[Column], item: Callable[[], Term]) -> Term:
        if self._tokens.peek().kind != "marker":
            return Several(tuple(self._tokens.enclosed(item)))
        if len(columns) > 1:
            raise CqlSyntaxError("this server knows no `(a, b) IN ?`: write a marker for each value")
        return self._term(Column(f"in({columns[0].name})", cql_type(f"list<{columns[0].type.text}>")))

    def _term(self, column: Column) -> Term:
        token = self._tokens.next()
        if token.kind != "marker":
            return Constant(token.constant)
        self._parsed.markers.append(Column(token.text[1:] or column.name, column.type))
        return Marker(len(self._parsed.markers) - 1)

    def _selector(self) -> Callable[[Table], list[Column]]:
        """Read one selected thing; what its type is, only the table tells, which comes later."""
        if self._tokens.accept("*"):
            return lambda table: [table.column(name) for name in table.select_order]
        name = self._tokens.name()
        if self._tokens.peek().text != "(":
            return self._named(lambda table: _column_of(table, name))
        inner = self._tokens.balanced()
        return self._named(lambda _: _function(name, inner))

    def _named(self, selector: Callable[[Table], Column]) -> Callable[[Table], list[Column]]:
        alias = self._tokens.name() if self._tokens.accept("as") else None
        return lambda table: [replace(selector(table), name=alias or selector(table).name)]


_FUNCTIONS: Final[dict[str, CqlType]] = {"ttl": INT, "writetime": BIGINT, "count": BIGINT, "tounixtimestamp": BIGINT}


def _column_of(table: Table, name: str) -> Column:
    if name not in table.columns:
        raise CqlInvalid(f"Undefined column name {name} in table {table.keyspace}.{table.name}")
    return table.column(name)


def _function(name: str, inner: str) -> Column:
    if name not in _FUNCTIONS:
        raise CqlInvalid(f"Unknown function '{name}'")
    return Column("count" if name == "count" else f"{name}({inner})", _FUNCTIONS[name], function=name)
