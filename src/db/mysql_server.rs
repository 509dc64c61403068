//! The product behind MySQL's protocol.

/// A server that speaks MySQL's protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MysqlServer {
    /// MySQL itself, or an unrecognised product.
    Mysql,
    /// MariaDB.
    MariaDb,
    /// OceanBase in MySQL mode, and its embedded edition seekdb.
    OceanBase,
}

impl MysqlServer {
    /// The product with this `VERSION()`.
    pub(in crate::db) fn from_version(version: &str) -> Self {
        let version = version.to_ascii_lowercase();
        if version.contains("mariadb") {
            Self::MariaDb
        } else if version.contains("oceanbase") || version.contains("seekdb") {
            Self::OceanBase
        } else {
            Self::Mysql
        }
    }
}

#[cfg(test)]
mod tests {
    use super::MysqlServer::{self, MariaDb, Mysql, OceanBase};

    #[test]
    fn products_are_known_by_their_versions() {
        for (version, server) in [
            ("9.7.4-2", Mysql),
            ("8.0.36-28 Percona Server", Mysql),
            ("10.11.19-MariaDB-0+deb12u1", MariaDb),
            ("5.5.5-10.6.12-MariaDB-log", MariaDb),
            ("5.7.25-OceanBase-v4.3.5.3", OceanBase),
            ("5.7.25-OceanBase seekdb-v1.0.0.0", OceanBase),
        ] {
            assert_eq!(MysqlServer::from_version(version), server, "{version}");
        }
    }
}
