//! TLS to a server known by its IPv6 address, for a library that accepts only names.

use super::provider;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use std::net::IpAddr;
use std::sync::Arc;

/// TLS to a server whose certificate must be for this address, whatever name the caller passes.
pub(super) fn tls_to_address(
    roots: RootCertStore,
    address: IpAddr,
) -> Result<ClientConfig, String> {
    let fault = |error: &dyn std::fmt::Display| format!("cannot prepare TLS: {error}");
    let inner = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider()).build();
    let inner = inner.map_err(|error| fault(&error))?;
    let verifier = Arc::new(AddressVerifier { inner, name: ServerName::IpAddress(address.into()) });
    let config = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(|error| fault(&error))?;
    let mut config =
        config.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth();
    // The name is not one of the server's.
    config.enable_sni = false;
    Ok(config)
}

/// Normal verification, with an address in place of the passed name.
#[derive(Debug)]
struct AddressVerifier {
    inner: Arc<WebPkiServerVerifier>,
    name: ServerName<'static>,
}

impl ServerCertVerifier for AddressVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.inner.verify_server_cert(end_entity, intermediates, &self.name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
    }
}
