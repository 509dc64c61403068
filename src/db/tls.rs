//! Recognises TLS failures of a server, and gives the hint.

/// The hint when a server has no TLS, or its certificate cannot be verified.
pub(super) const TLS_HINT: &str = "a server on another machine has to show a certificate that can be verified: name its \
    authority's file in the URL (PostgreSQL ?sslrootcert=FILE, MySQL and MariaDB ?ssl-ca=FILE), or say in the URL that \
    less is enough (?sslmode=require encrypts, ?sslmode=disable is in clear; MySQL and MariaDB: ?ssl-mode=REQUIRED, \
    DISABLED)";

/// Whether the server has no TLS or its certificate is refused: a retry will fail in the same way.
/// rustls's handshake errors arrive as read errors.
pub(super) fn is_refused_by_tls(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Tls(_) => true,
        sqlx::Error::Io(error) => error.get_ref().is_some_and(|inner| inner.is::<rustls::Error>()),
        _ => false,
    }
}
