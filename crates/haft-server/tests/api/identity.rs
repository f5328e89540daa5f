use crate::support::{key, request, world, world_with};
use axum::http::{Method, StatusCode, header};
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use haft_core::port::{KeyStore as _, Right};
use haft_server::{JwksSource, TokenOptions};
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use serde_json::{Value, json};
use std::time::Duration;

fn echo() -> Value {
    json!({"name": "echo", "arguments": {"text": "hello"}})
}

#[tokio::test]
async fn a_key_is_its_tenant_and_its_rights() {
    let world = world().await;
    let me = world.get(&world.invoker, "/v1/me").await.json();
    assert_eq!((&me["tenant"], &me["rights"]), (&json!("acme"), &json!(["invoke"])));
    let may_not = [
        (&world.approver, "/v1/invoke", echo()),
        (&world.operator, "/v1/batch", json!({"calls": [echo()]})),
        (&world.invoker, "/v1/approvals/apr_a", json!({"decision": "approve"})),
    ];
    for (key, path, body) in may_not {
        let answer = world.post(key, path, body).await;
        assert_eq!(
            (answer.status, &answer.json()["code"]),
            (StatusCode::FORBIDDEN, &json!("PERMISSION_DENIED")),
            "{path}"
        );
    }
    for path in ["/metrics", "/v1/stats", "/v1/doctor"] {
        assert_eq!(world.get(&world.invoker, path).await.status, StatusCode::FORBIDDEN, "{path}");
        assert_eq!(world.get(&world.operator, path).await.status, StatusCode::OK, "{path}");
    }
    let answered = world.post(&world.approver, "/v1/approvals/apr_a", json!({"decision": "deny"})).await;
    assert_eq!(answered.json()["state"], "denied");
    let again = world.post(&world.approver, "/v1/approvals/apr_a", json!({"decision": "approve"})).await;
    assert_eq!((again.status, &again.json()["code"]), (StatusCode::CONFLICT, &json!("ALREADY_ANSWERED")));
}

#[tokio::test]
async fn a_key_that_is_over_counts_no_more() {
    let world = world().await;
    let now = jiff::Timestamp::now();
    let expired = key(&world.keys, "acme", &[Right::Invoke], |key| key.expires_at = Some(now)).await;
    let revoked = key(&world.keys, "acme", &[Right::Invoke], |key| key.revoked_at = Some(now)).await;
    for over in [&expired, &revoked] {
        assert_eq!(world.get(over, "/v1/me").await.status, StatusCode::UNAUTHORIZED);
    }
    let id = "key_soon".to_owned();
    let soon = key(&world.keys, "acme", &[Right::Invoke], |key| key.id.clone_from(&id)).await;
    assert_eq!(world.get(&soon, "/v1/me").await.status, StatusCode::OK);
    assert!(world.keys.revoke(&id).await.unwrap());
    tokio::time::sleep(Duration::from_millis(2200)).await;
    assert_eq!(world.get(&soon, "/v1/me").await.status, StatusCode::UNAUTHORIZED, "within two seconds");
}

#[tokio::test]
async fn whoever_calls_does_not_approve_unless_that_was_said() {
    let allowed = world().await;
    let both = key(&allowed.keys, "acme", &[Right::Invoke, Right::Approve], |_| {}).await;
    assert_eq!(allowed.get(&both, "/v1/me").await.json()["rights"], json!(["invoke", "approve"]));
    let folder = tempfile::tempdir().unwrap();
    let haft = haft::Haft::builder().durable(folder.path(), Default::default()).build().unwrap();
    let keys = std::sync::Arc::new(haft_store::MemoryKeys::default());
    let secret = key(&keys, "acme", &[Right::Invoke, Right::Approve], |_| {}).await;
    let strict = haft_server::Server::builder(haft.into_engine()).keys(keys).build();
    let response =
        tower::ServiceExt::oneshot(strict.router(), request(Method::GET, "/v1/me", Some(&secret), None))
            .await
            .unwrap();
    let body = axum::body::to_bytes(response.into_body(), 1 << 20).await.unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&body).unwrap()["rights"], json!(["invoke"]));
}

#[tokio::test]
async fn a_key_of_one_agent_speaks_for_no_other() {
    let world = world().await;
    let bound =
        key(&world.keys, "acme", &[Right::Invoke], |key| key.agent = Some("did:agent:7".into())).await;
    let call = |agent: &str| json!({"name": "echo", "arguments": {"text": "a"}, "context": {"agent": agent}});
    assert_eq!(world.post(&bound, "/v1/invoke", call("did:agent:7")).await.status, StatusCode::OK);
    assert_eq!(world.post(&bound, "/v1/invoke", call("did:agent:8")).await.status, StatusCode::FORBIDDEN);
    assert_eq!(world.post(&world.invoker, "/v1/invoke", call("did:agent:8")).await.status, StatusCode::OK);
    let records = world.get(&world.invoker, "/v1/audit?agent=did:agent:8").await.json();
    assert_eq!(records["records"].as_array().unwrap().len(), 1);
    let platform =
        |tenant: &str| json!({"parameters": {"text": "a"}, "agent_context": {"tenant_id": tenant}});
    assert_eq!(
        world.post(&world.invoker, "/v1/tools/echo/invoke", platform("acme")).await.status,
        StatusCode::OK
    );
    assert_eq!(
        world.post(&world.invoker, "/v1/tools/echo/invoke", platform("rival")).await.status,
        StatusCode::FORBIDDEN
    );
}

#[tokio::test]
async fn two_authorisations_are_none() {
    let world = world().await;
    let mut twice = request(Method::GET, "/v1/me", Some(&world.invoker), None);
    let same = twice.headers()[header::AUTHORIZATION].clone();
    twice.headers_mut().append(header::AUTHORIZATION, same);
    assert_eq!(world.send(twice).await.status, StatusCode::UNAUTHORIZED);
}

fn token(pair: &Ed25519KeyPair, header: Value, claims: &Value) -> String {
    let part = |value: &Value| BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
    let message = format!("{}.{}", part(&header), part(claims));
    let signature = BASE64_URL_SAFE_NO_PAD.encode(pair.sign(message.as_bytes()));
    format!("{message}.{signature}")
}

fn pair() -> Ed25519KeyPair {
    let document = Ed25519KeyPair::generate_pkcs8(&ring::rand::SystemRandom::new()).unwrap();
    Ed25519KeyPair::from_pkcs8(document.as_ref()).unwrap()
}

#[tokio::test]
async fn a_token_of_the_identity_provider_is_known() {
    let (ours, theirs) = (pair(), pair());
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("jwks.json");
    let jwk = |pair: &Ed25519KeyPair, kid: &str| json!({"kty": "OKP", "crv": "Ed25519", "kid": kid, "use": "sig", "x": BASE64_URL_SAFE_NO_PAD.encode(pair.public_key())});
    std::fs::write(&file, json!({"keys": [jwk(&ours, "one"), {"kty": "oct", "k": "AAAA"}]}).to_string())
        .unwrap();
    let options = TokenOptions {
        issuer: "https://id.example".into(),
        audience: "haft".into(),
        jwks: JwksSource::File(file),
        tenant_claim: "tenant".into(),
        roles_claim: "roles".into(),
        resource: Some("https://haft.example".into()),
    };
    let world = world_with(|builder| builder.tokens(options)).await;
    let now = jiff::Timestamp::now().as_second();
    let claims = json!({"iss": "https://id.example", "aud": "haft", "exp": now + 60, "sub": "ada", "tenant": "acme",
        "scope": "haft:invoke", "roles": ["admin"]});
    let header = json!({"alg": "EdDSA", "kid": "one", "typ": "JWT"});
    let good = token(&ours, header.clone(), &claims);
    let me = world.get(&good, "/v1/me").await.json();
    assert_eq!(
        (&me["tenant"], &me["user"], &me["rights"]),
        (&json!("acme"), &json!("ada"), &json!(["invoke"]))
    );
    assert_eq!(world.post(&good, "/v1/invoke", echo()).await.status, StatusCode::OK);

    let with = |name: &str, value: Value| {
        let mut claims = claims.clone();
        claims[name] = value;
        token(&ours, header.clone(), &claims)
    };
    let unsigned = |alg: &str| {
        let token = token(&ours, json!({"alg": alg, "kid": "one"}), &claims);
        format!("{}.", token.rsplit_once('.').unwrap().0)
    };
    let tampered = good.replacen(&good[60..61], if &good[60..61] == "A" { "B" } else { "A" }, 1);
    for bad in [
        token(&theirs, header.clone(), &claims),
        token(&theirs, json!({"alg": "EdDSA", "kid": "two"}), &claims),
        token(&ours, json!({"alg": "ES256", "kid": "one"}), &claims),
        token(&ours, json!({"alg": "none"}), &claims),
        unsigned("none"),
        unsigned("EdDSA"),
        tampered,
        with("exp", json!(now - 60)),
        with("aud", json!("other")),
        with("iss", json!("https://evil.example")),
        with("tenant", json!(null)),
        with("tenant", json!("a\nb")),
    ] {
        let answer = world.get(&bad, "/v1/me").await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{bad}");
        let challenge = answer.headers[header::WWW_AUTHENTICATE].to_str().unwrap();
        assert!(
            challenge
                .contains("resource_metadata=\"https://haft.example/.well-known/oauth-protected-resource\""),
            "{challenge}"
        );
    }
    let metadata =
        world.send(request(Method::GET, "/.well-known/oauth-protected-resource", None, None)).await.json();
    assert_eq!(metadata["authorization_servers"], json!(["https://id.example"]));
}
