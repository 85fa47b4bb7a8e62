#!/bin/sh
# cqlsh from its Python package, which brings its own driver.
PYTHONPATH=/opt/cqlsh exec python3 -m cqlshlib "$@"
