//! Users and tokens.

use crate::server::Server;
use procession::domain::access::Role;

#[tokio::test]
async fn a_token_opens_the_door_and_its_end_shuts_it() {
    let server = Server::new().await;
    let token = server.token(&[("*", Role::Viewer, &[])]).await;
    server.get("/batches", &token).await.is(200);
    server.get("/batches", "").await.is(401);
    server.get("/batches", "pcs_nonsense").await.is(401);
    server.later(86_400_000);
    server.get("/batches", &token).await.is(401);
}
