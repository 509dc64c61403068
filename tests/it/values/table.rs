//! Types of each server with values of theirs, and the text that each value has here.

use procession::domain::value::ValueType;
use procession::domain::value::ValueType::{
    Array, Bool, Bytes, Date, Decimal, Int, Interval, Json, Text, Time, Timestamp, TimestampTz,
};

/// A value of a server's type.
pub(crate) struct TypedValue {
    /// The type, as a column or a parameter declares it.
    pub(crate) ty: &'static str,
    /// The value, as a statement says it.
    pub(crate) sql: &'static str,
    /// Its text.
    pub(crate) text: &'static str,
    /// The type that goes with it.
    pub(crate) kind: ValueType,
    /// What the server itself writes, where that is another text.
    pub(crate) server: Option<&'static str>,
}

const fn same(
    kind: ValueType,
    ty: &'static str,
    sql: &'static str,
    text: &'static str,
) -> TypedValue {
    TypedValue { ty, sql, text, kind, server: None }
}

const fn other(
    kind: ValueType,
    ty: &'static str,
    sql: &'static str,
    text: &'static str,
    server: &'static str,
) -> TypedValue {
    TypedValue { ty, sql, text, kind, server: Some(server) }
}

/// What the table of PostgreSQL needs.
pub(crate) const POSTGRES_SETUP: &[&str] = &[
    "CREATE TYPE mood AS ENUM ('ok', '坏')",
    "CREATE DOMAIN amount AS numeric(10,3)",
    "CREATE TYPE entry AS (n int, what text, due date)",
];

#[rustfmt::skip]
pub(crate) const POSTGRES: &[TypedValue] = &[
    same(Bool, "boolean", "true", "true"),
    same(Bool, "boolean", "false", "false"),
    same(Int, "smallint", "-32768", "-32768"),
    same(Int, "integer", "2147483647", "2147483647"),
    same(Int, "bigint", "-9223372036854775808", "-9223372036854775808"),
    same(Decimal, "numeric", "0.00", "0.00"),
    same(Decimal, "numeric", "-123456789012345678901234567890.123456789", "-123456789012345678901234567890.123456789"),
    same(Decimal, "numeric", "1e-10", "0.0000000001"),
    same(Decimal, "numeric", "'NaN'", "NaN"),
    same(Decimal, "numeric(20,4)", "1.5", "1.5000"),
    same(Decimal, "real", "0.1", "0.1"),
    other(Decimal, "real", "'3.4028235e38'", "340282350000000000000000000000000000000", "3.4028235e+38"),
    same(Decimal, "double precision", "0.1::float8 + 0.2::float8", "0.30000000000000004"),
    other(Decimal, "double precision", "1e20", "100000000000000000000", "1e+20"),
    same(Decimal, "double precision", "'-Infinity'", "-Infinity"),
    same(Text, "text", "''", ""),
    same(Text, "text", "'O''Brien 月 🧾'", "O'Brien 月 🧾"),
    same(Text, "text", "E'a\\tb\\x01c\\n'", "a\tb\u{1}c\n"),
    same(Text, "text", "'0x6162'", "0x6162"),
    same(Text, "varchar(9)", "'NULL'", "NULL"),
    other(Text, "char(3)", "'x'", "x  ", "x"),
    same(Text, "name", "'nm'", "nm"),
    same(Text, "\"char\"", "'c'", "c"),
    same(Text, "uuid", "'A0EEBC99-9c0b-4ef8-bb6d-6bb9bd380a11'", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
    same(Json, "json", "'{\"b\": 1,  \"a\": null}'", "{\"b\": 1,  \"a\": null}"),
    same(Json, "jsonb", "'{\"b\": 1,  \"a\": null}'", "{\"a\": null, \"b\": 1}"),
    other(Bytes, "bytea", "'\\x00ff'", "0x00ff", "\\x00ff"),
    other(Bytes, "bytea", "''", "0x", "\\x"),
    same(Text, "bit(4)", "B'0101'", "0101"),
    same(Text, "varbit", "B''", ""),
    same(Date, "date", "'2024-02-29'", "2024-02-29"),
    same(Date, "date", "'0044-03-15 BC'", "0044-03-15 BC"),
    same(Date, "date", "'5874897-12-31'", "5874897-12-31"),
    same(Date, "date", "'infinity'", "infinity"),
    same(Time, "time", "'24:00:00'", "24:00:00"),
    same(Time, "time", "'10:11:12.5'", "10:11:12.5"),
    same(Time, "timetz", "'10:11:12+08'", "10:11:12+08"),
    same(Time, "timetz", "'00:00:00-03:30:45'", "00:00:00-03:30:45"),
    same(Timestamp, "timestamp", "'2024-02-29 10:11:12.000500'", "2024-02-29 10:11:12.0005"),
    same(Timestamp, "timestamp", "'0001-01-01 00:00:00 BC'", "0001-01-01 00:00:00 BC"),
    same(Timestamp, "timestamp", "'294276-12-31 23:59:59.999999'", "294276-12-31 23:59:59.999999"),
    same(TimestampTz, "timestamptz", "'2024-02-29 10:11:12+08'", "2024-02-29 02:11:12+00"),
    same(TimestampTz, "timestamptz", "'-infinity'", "-infinity"),
    same(Interval, "interval", "'-0.5 s'", "-00:00:00.5"),
    same(Interval, "interval", "'1 year 2 mons -3 days 04:05:06.5'", "1 year 2 mons -3 days +04:05:06.5"),
    same(Interval, "interval", "'1 day'", "1 day"),
    same(Interval, "interval", "'0'", "00:00:00"),
    same(Text, "inet", "'10.0.0.1/24'", "10.0.0.1/24"),
    other(Text, "inet", "'::ffff:1.2.3.4'", "::ffff:1.2.3.4", "::ffff:1.2.3.4/128"),
    other(Text, "inet", "'2001:db8::1'", "2001:db8::1", "2001:db8::1/128"),
    same(Text, "cidr", "'10.0.0.0/8'", "10.0.0.0/8"),
    same(Text, "macaddr", "'08:00:2b:01:02:03'", "08:00:2b:01:02:03"),
    same(Text, "pg_lsn", "'16/B374D848'", "16/B374D848"),
    same(Int, "oid", "26", "26"),
    same(Array, "integer[]", "'{1,NULL,3}'", "{1,NULL,3}"),
    same(Array, "integer[]", "'[0:1]={1,2}'", "[0:1]={1,2}"),
    same(Array, "integer[]", "'{{1,2},{3,4}}'", "{{1,2},{3,4}}"),
    same(Array, "text[]", "ARRAY['a b', 'NULL', '', '\"', 'x,y', NULL]", "{\"a b\",\"NULL\",\"\",\"\\\"\",\"x,y\",NULL}"),
    same(Array, "text[]", "'{}'", "{}"),
    same(Array, "boolean[]", "'{t,f}'", "{t,f}"),
    same(Array, "bytea[]", "ARRAY['\\x00ff'::bytea]", "{\"\\\\x00ff\"}"),
    same(Array, "numeric(10,2)[]", "'{1.5,-2}'", "{1.50,-2.00}"),
    same(Array, "timestamptz[]", "ARRAY['2024-02-29 10:11:12+08'::timestamptz]", "{\"2024-02-29 02:11:12+00\"}"),
    same(Array, "mood[]", "ARRAY['坏'::mood]", "{坏}"),
    same(Text, "int4range", "'[1,5]'", "[1,6)"),
    same(Text, "int4range", "'empty'", "empty"),
    same(Text, "daterange", "'[2024-01-01,]'", "[2024-01-01,)"),
    same(Text, "tstzrange", "'[2024-02-29 10:11:12+08,)'", "[\"2024-02-29 02:11:12+00\",)"),
    same(Text, "mood", "'坏'", "坏"),
    same(Decimal, "amount", "1.5", "1.500"),
    same(Text, "entry", "ROW(1, 'a \"b\"', '2024-02-29')", "(1,\"a \"\"b\"\"\",2024-02-29)"),
    same(Text, "entry", "ROW(NULL, '', NULL)", "(,\"\",)"),
];

/// Values of PostgreSQL that are not carried: type, value, and the reason.
pub(crate) const POSTGRES_NOT_CARRIED: &[(&str, &str, &str)] = &[
    ("money", "1.5::money", "depends on the server's locale; cast it to numeric"),
    ("money[]", "ARRAY[1.5::money]", "is of a type that is not carried; cast it to text"),
    ("tsvector", "'a b'::tsvector", "is of a type that is not carried; cast it to text"),
    ("point", "point(1, 2)", "is of a type that is not carried; cast it to text"),
    ("regclass", "'pg_class'::regclass", "is of a type that is not carried; cast it to text"),
    ("refcursor", "'c'::refcursor", "names a cursor, whose rows are not fetched"),
];

#[rustfmt::skip]
pub(crate) const MYSQL: &[TypedValue] = &[
    same(Int, "TINYINT(1)", "TRUE", "1"),
    same(Int, "TINYINT", "-128", "-128"),
    same(Int, "TINYINT UNSIGNED", "255", "255"),
    same(Int, "INT", "-2147483648", "-2147483648"),
    other(Int, "INT(10) UNSIGNED ZEROFILL", "42", "42", "0000000042"),
    same(Int, "BIGINT", "-9223372036854775808", "-9223372036854775808"),
    same(Int, "BIGINT UNSIGNED", "18446744073709551615", "18446744073709551615"),
    other(Int, "BIT(8)", "b'101'", "5", "\u{5}"),
    same(Decimal, "DECIMAL(65,30)", "-12345678901234567890123456789012345.123456789012345678901234567890",
        "-12345678901234567890123456789012345.123456789012345678901234567890"),
    same(Decimal, "DECIMAL(10,2)", "0", "0.00"),
    same(Decimal, "DOUBLE", "0.1", "0.1"),
    other(Decimal, "DOUBLE", "1e20", "100000000000000000000", "1e20"),
    same(Int, "YEAR", "2024", "2024"),
    same(Int, "YEAR", "0", "0000"),
    same(Date, "DATE", "'2024-02-29'", "2024-02-29"),
    same(Date, "DATE", "'0000-00-00'", "0000-00-00"),
    same(Timestamp, "DATETIME", "'9999-12-31 23:59:59'", "9999-12-31 23:59:59"),
    other(Timestamp, "DATETIME(6)", "'2024-02-29 10:11:12.000500'", "2024-02-29 10:11:12.0005", "2024-02-29 10:11:12.000500"),
    other(Timestamp, "DATETIME(3)", "'2024-02-29 10:11:12'", "2024-02-29 10:11:12", "2024-02-29 10:11:12.000"),
    same(Timestamp, "TIMESTAMP", "'2024-02-29 10:11:12'", "2024-02-29 10:11:12"),
    same(Time, "TIME", "'838:59:59'", "838:59:59"),
    other(Time, "TIME(6)", "'-00:00:00.5'", "-00:00:00.5", "-00:00:00.500000"),
    same(Text, "CHAR(3)", "'x'", "x"),
    same(Text, "VARCHAR(20)", "'O''Brien 月 🧾'", "O'Brien 月 🧾"),
    same(Text, "VARCHAR(20)", "'a\\tb\u{1}c\\n'", "a\tb\u{1}c\n"),
    same(Text, "VARCHAR(20)", "'0x6162'", "0x6162"),
    same(Text, "VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin", "'月\u{1}'", "月\u{1}"),
    same(Text, "VARCHAR(20) CHARACTER SET latin1", "'é'", "é"),
    same(Text, "TEXT", "''", ""),
    same(Text, "ENUM('ok','bad')", "'bad'", "bad"),
    same(Text, "SET('a','b','c')", "'a,c'", "a,c"),
    same(Json, "JSON", "'{\"a\": [1, null]}'", "{\"a\": [1, null]}"),
    other(Bytes, "BINARY(3)", "x'00ff'", "0x00ff00", "\u{0}\u{ff}\u{0}"),
    other(Bytes, "VARBINARY(9)", "''", "0x", ""),
    other(Bytes, "BLOB", "x'6162'", "0x6162", "ab"),
    other(Bytes, "POINT", "ST_GeomFromText('POINT(1 2)')", "0x000000000101000000000000000000f03f0000000000000040", ""),
];

/// Values of SQLite, whose type is the value's own.
#[rustfmt::skip]
pub(crate) const SQLITE: &[TypedValue] = &[
    same(Int, "INTEGER", "-9223372036854775808", "-9223372036854775808"),
    same(Int, "INTEGER", "9223372036854775807", "9223372036854775807"),
    same(Decimal, "REAL", "0.1", "0.1"),
    other(Decimal, "REAL", "1e20", "100000000000000000000", "1.0e+20"),
    other(Decimal, "REAL", "-12.50", "-12.5", "-12.5"),
    other(Decimal, "REAL", "9e999", "Infinity", "Inf"),
    same(Text, "TEXT", "''", ""),
    same(Text, "TEXT", "'O''Brien 月 🧾'", "O'Brien 月 🧾"),
    same(Text, "TEXT", "'a' || char(9, 1, 10)", "a\t\u{1}\n"),
    same(Text, "TEXT", "'0x6162'", "0x6162"),
    other(Bytes, "BLOB", "x'00ff'", "0x00ff", "\u{0}\u{ff}"),
    other(Bytes, "BLOB", "x''", "0x", ""),
];
