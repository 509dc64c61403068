"""Reads the PostgreSQL corpus of lineage by PostgreSQL's own parser (libpg_query, by pglast) and compares the tables that
each routine reads and writes with those that are written beside it by hand. Called by scripts/test-lineage.sh."""

import json
import re
import sys

import pglast
from pglast import ast
from pglast.visitors import Visitor

ROUTINE = re.compile(r"^-- == (\S+)\n((?:--[^\n]*\n)*)(.*?)(?=^-- == |\Z)", re.M | re.S)


class Tables(Visitor):
    """Tables of statements: `reads` and `writes`."""

    def __init__(self):
        super().__init__()
        self.reads, self.writes, self.temporary, self.common = set(), set(), set(), set()
        # Nodes are kept, for an id is used again when its object is gone.
        self.targets, self.kept = set(), []

    def _target(self, node):
        self.kept.append(node)
        self.targets.add(id(node))

    def _name(self, node):
        return f"{node.schemaname}.{node.relname}" if node.schemaname else node.relname

    def _write(self, node):
        self._target(node)
        if node.relpersistence == "t" or node.schemaname == "pg_temp":
            self.temporary.add(node.relname)
        else:
            self.writes.add(self._name(node))

    def visit_CommonTableExpr(self, _, node):
        self.common.add(node.ctename)

    def visit_InsertStmt(self, _, node):
        self._write(node.relation)

    visit_UpdateStmt = visit_DeleteStmt = visit_MergeStmt = visit_InsertStmt

    def visit_TruncateStmt(self, _, node):
        for relation in node.relations:
            self._write(relation)

    def visit_CreateTableAsStmt(self, _, node):
        self._write(node.into.rel)

    def visit_CreateStmt(self, _, node):
        self._write(node.relation)

    def visit_RefreshMatViewStmt(self, _, node):
        self._write(node.relation)

    def visit_AlterTableStmt(self, _, node):
        self._write(node.relation)
        for command in node.cmds or ():
            if isinstance(command.def_, ast.PartitionCmd):
                self._write(command.def_.name)

    def visit_RenameStmt(self, _, node):
        self._write(node.relation)
        self.writes.add(node.newname)

    def visit_DropStmt(self, _, node):
        for names in node.objects:
            parts = [part.sval for part in names]
            if parts[0] == "pg_temp":
                self.temporary.add(parts[-1])
            else:
                self.writes.add(".".join(parts))

    def visit_IndexStmt(self, _, node):
        self._target(node.relation)

    def visit_LockStmt(self, _, node):
        for relation in node.relations:
            self._target(relation)

    def visit_VacuumStmt(self, _, node):
        for one in node.rels or ():
            self._target(one.relation)

    def visit_LockingClause(self, _, node):
        for relation in node.lockedRels or ():
            self._target(relation)

    def visit_RangeVar(self, _, node):
        if id(node) not in self.targets:
            self.reads.add(self._name(node))


def queries(tree):
    """The SQL texts of a PL/pgSQL function."""
    if isinstance(tree, dict):
        for key, value in tree.items():
            if key == "PLpgSQL_expr":
                yield value["query"], value.get("parseMode", 0)
            else:
                yield from queries(value)
    elif isinstance(tree, list):
        for value in tree:
            yield from queries(value)


def sql_of(text, mode):
    """An expression or assignment as a statement."""
    if mode == 2:
        return "SELECT " + text
    if mode >= 3:
        return "SELECT " + re.split(r":=|=", text, maxsplit=1)[1]
    return text


def read(text):
    tables = Tables()
    statement = pglast.parse_sql(text)[0].stmt
    options = {option.defname: option.arg for option in statement.options or ()}
    language = options["language"].sval if "language" in options else "sql"
    if statement.sql_body is not None:
        tables(statement.sql_body)
    elif language == "plpgsql":
        seen = json.loads(json.dumps(pglast.parse_plpgsql(text)))
        for query, mode in queries(seen):
            try:
                tree = pglast.parse_sql(sql_of(query, mode))
            except pglast.parser.ParseError:
                tree = pglast.parse_sql("SELECT " + query)
            tables(tree)
    else:
        tables(pglast.parse_sql(options["as"][0].sval))
    own = tables.temporary | tables.common
    return tables.reads - own - {"pg_tables"}, tables.writes - own


def main():
    text = open(sys.argv[1], encoding="utf-8").read()
    expected = found = right = refused = 0
    faults = []
    for name, head, body in ROUTINE.findall(text):
        lists = dict(line[3:].split(": ", 1) for line in head.splitlines() if ": " in line)
        try:
            reads, writes = read(body.strip())
        except Exception as error:  # a routine that the oracle refuses is no fault of the corpus
            refused += 1
            print(f"{name}: refused by the oracle: {error}", file=sys.stderr)
            continue
        for key, got in (("reads", reads), ("writes", writes)):
            wanted = set(lists[key].split(", ")) if key in lists else set()
            expected, found = expected + len(wanted), found + len(got)
            right += len(wanted & got)
            if wanted != got:
                faults.append(f"{name}: {key}: by hand {sorted(wanted)}, oracle {sorted(got)}")
    print("\n".join(faults), flush=True)
    print(f"{expected} accesses by hand, {found} by the oracle, {right} the same, {refused} routines refused")
    if refused > 8 or right < 0.99 * max(expected, found):
        sys.exit(1)


if __name__ == "__main__":
    main()
