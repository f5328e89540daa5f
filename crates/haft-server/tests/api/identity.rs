use crate::support::{DOCUMENT, key, request, world, world_with};
use axum::http::{Method, StatusCode, header};
use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use haft_core::port::{KeyStore as _, Right};
use haft_server::{JwksSource, TokenOptions};
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use serde_json::{Value, json};
use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

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
    for path in ["/metrics", "/v1/stats", "/v1/doctor", "/v1/audit/events"] {
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
    // Names that haft gives itself: such a key would be the owner.
    for name in ["owner", "mcp:Code", "key_other"] {
        let agent = key(&world.keys, "acme", &[Right::Invoke], |key| key.agent = Some(name.into())).await;
        let user = key(&world.keys, "acme", &[Right::Invoke], |key| key.user = Some(name.into())).await;
        for taken in [&agent, &user] {
            assert_eq!(world.get(taken, "/v1/me").await.status, StatusCode::UNAUTHORIZED, "{name}");
        }
    }
    let bound = key(&world.keys, "acme", &[Right::Invoke], |key| key.agent = Some("builder".into())).await;
    assert_eq!(world.get(&bound, "/v1/me").await.status, StatusCode::OK, "the control");
    let id = "key_soon".to_owned();
    let soon = key(&world.keys, "acme", &[Right::Invoke], |key| key.id.clone_from(&id)).await;
    assert_eq!(world.get(&soon, "/v1/me").await.status, StatusCode::OK);
    assert!(world.keys.revoke(&id, "ada").await.unwrap());
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
    let records = world.get(&world.invoker, "/v1/audit?agent=key_acme_invoke/did:agent:8").await.json();
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

/// A body for each route that says who a call is for, with that agent.
fn naming(path: &str, agent: &str) -> Option<Value> {
    let call = json!({"name": "echo", "arguments": {"text": "a"}});
    let context = json!({"agent": agent});
    Some(match path {
        "/v1/invoke" | "/v1/plan" | "/v1/policy/explain" => {
            json!({"name": "echo", "arguments": {"text": "a"}, "context": context})
        }
        "/v1/batch" => json!({"calls": [call], "context": context}),
        "/v1/flow" => json!({"flow": {"name": "f", "description": "F", "nodes": [
            {"name": "a", "tool": "echo", "arguments": {"text": "a"}}]}, "context": context}),
        "/v1/tools/{name}/invoke" => {
            json!({"parameters": {"text": "a"}, "agent_context": {"agent_did": agent}})
        }
        "/v1/tool.invoke" => {
            json!({"tool_id": "echo", "parameters": {"text": "a"}, "agent_context": {"agent_did": agent}})
        }
        _ => return None,
    })
}

#[tokio::test]
async fn no_request_makes_a_key_somebody_else() {
    let world = world().await;
    let mut tried = 0;
    for (path, item) in DOCUMENT["paths"].as_object().unwrap() {
        let body = item["post"].pointer("/requestBody/content/application~1json/schema/$ref");
        let Some(schema) = body.and_then(Value::as_str).and_then(|at| DOCUMENT.pointer(&at[1..])) else {
            continue;
        };
        let properties = &schema["properties"];
        if properties.get("context").or_else(|| properties.get("agent_context")).is_none() {
            continue;
        }
        let at = path.replace("{name}", "echo");
        let send = async |secret: &str, agent: &str| {
            let body = naming(path, agent).unwrap_or_else(|| panic!("{path} takes a context: try it here"));
            world.post(secret, &at, body).await
        };
        for other in ["owner", "Owner", "mcp:Code", "key_rival_invoke", "key_acme_approve"] {
            let said = send(&world.invoker, other).await;
            assert_eq!(said.status, StatusCode::FORBIDDEN, "{path} {other}");
            let said = said.json();
            let why = said.get("detail").unwrap_or(&said["error"]["message"]).as_str().unwrap();
            assert!(why.contains("`owner`, `mcp:…`"), "{path} {other}: {why}");
        }
        // The control: another name is fine, and stands behind that of the key.
        let name = format!("agent{tried}");
        assert_eq!(send(&world.invoker, &name).await.status, StatusCode::OK, "{path}");
        let audit = async |agent: &str| {
            let records = world.get(&world.invoker, &format!("/v1/audit?agent={agent}")).await.json();
            records["records"].as_array().unwrap().len()
        };
        let runs = usize::from(!["/v1/plan", "/v1/policy/explain"].contains(&&**path));
        assert_eq!(audit(&format!("key_acme_invoke/{name}")).await, runs, "{path}");
        assert_eq!(audit(&name).await, 0, "{path}");
        tried += 1;
    }
    assert_eq!(tried, 7);
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
        with("sub", json!("owner")),
        with("azp", json!("key_acme_invoke")),
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

/// An identity provider on this machine: its keys, and how often it was asked.
struct Provider {
    keys: Arc<Mutex<Option<Value>>>,
    asked: Arc<AtomicUsize>,
    address: String,
}

async fn provider() -> Provider {
    let (keys, asked) = (Arc::<Mutex<Option<Value>>>::default(), Arc::<AtomicUsize>::default());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let (given, count, issuer) = (Arc::clone(&keys), Arc::clone(&asked), address.clone());
    let answer = move |request: axum::extract::Request| {
        let (given, count, issuer) = (given.lock().unwrap().clone(), Arc::clone(&count), issuer.clone());
        async move {
            assert!(!request.headers().contains_key(header::AUTHORIZATION), "a token is never passed on");
            match (request.uri().path(), given) {
                ("/.well-known/openid-configuration", _) => (
                    StatusCode::OK,
                    json!({"issuer": issuer, "jwks_uri": format!("{issuer}/keys")}).to_string(),
                ),
                ("/keys", Some(keys)) => {
                    count.fetch_add(1, Ordering::Relaxed);
                    (StatusCode::OK, json!({"keys": keys}).to_string())
                }
                ("/long", _) => (StatusCode::OK, format!("{{\"keys\": [{}]}}", " ".repeat(2 << 20))),
                _ => {
                    count.fetch_add(1, Ordering::Relaxed);
                    (StatusCode::INTERNAL_SERVER_ERROR, String::new())
                }
            }
        }
    };
    tokio::spawn(async move { axum::serve(listener, axum::Router::new().fallback(answer)).await });
    Provider { keys, asked, address }
}

fn claims(issuer: &str) -> Value {
    let now = jiff::Timestamp::now().as_second();
    json!({"iss": issuer, "aud": "haft", "exp": now + 60, "sub": "ada", "tenant": "acme", "scope": "haft:invoke"})
}

fn jwk(pair: &Ed25519KeyPair, kid: &str) -> Value {
    json!({"kty": "OKP", "crv": "Ed25519", "kid": kid, "x": BASE64_URL_SAFE_NO_PAD.encode(pair.public_key())})
}

fn options(issuer: &str, jwks: JwksSource) -> TokenOptions {
    TokenOptions {
        issuer: issuer.to_owned(),
        audience: "haft".into(),
        jwks,
        tenant_claim: "tenant".into(),
        roles_claim: "roles".into(),
        resource: Some("https://haft.example/below".into()),
    }
}

#[tokio::test]
async fn keys_are_fetched_once_and_again_when_they_change() {
    let (first, second) = (pair(), pair());
    let provider = provider().await;
    *provider.keys.lock().unwrap() = Some(json!([jwk(&first, "one")]));
    let world = world_with(|builder| builder.tokens(options(&provider.address, JwksSource::Discover))).await;
    let claims = claims(&provider.address);
    let one = token(&first, json!({"alg": "EdDSA", "kid": "one"}), &claims);
    let two = token(&second, json!({"alg": "EdDSA", "kid": "two"}), &claims);
    let many = (0..50).map(|_| world.get(&one, "/v1/me"));
    for answer in futures_util::future::join_all(many).await {
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
    }
    assert_eq!(provider.asked.load(Ordering::Relaxed), 1, "however many ask");
    // A key that is not known is looked for, but not by everybody who makes one up.
    for _ in 0..20 {
        assert_eq!(world.get(&two, "/v1/me").await.status, StatusCode::UNAUTHORIZED);
    }
    assert_eq!(provider.asked.load(Ordering::Relaxed), 1, "ten seconds have not passed");

    *provider.keys.lock().unwrap() = Some(json!([jwk(&second, "two")]));
    tokio::time::sleep(Duration::from_millis(10_100)).await;
    assert_eq!(world.get(&two, "/v1/me").await.status, StatusCode::OK, "the new key counts");
    assert_eq!(world.get(&one, "/v1/me").await.status, StatusCode::UNAUTHORIZED, "the old one does not");
    *provider.keys.lock().unwrap() = None;
    assert_eq!(
        world.get(&two, "/v1/me").await.status,
        StatusCode::OK,
        "a provider that is away locks nobody out"
    );

    let refused = world.send(request(Method::POST, "/mcp", None, None)).await;
    let challenge = refused.headers[header::WWW_AUTHENTICATE].to_str().unwrap().to_owned();
    let metadata = "https://haft.example/.well-known/oauth-protected-resource/below/mcp";
    assert!(challenge.contains(&format!("resource_metadata=\"{metadata}\"")), "{challenge}");
    let path = "/.well-known/oauth-protected-resource/mcp";
    let said = world.send(request(Method::GET, path, None, None)).await.json();
    assert_eq!(said["resource"], "https://haft.example/below/mcp");
}

#[tokio::test]
async fn without_keys_nobody_with_a_token_is_let_in_and_the_provider_is_left_in_peace() {
    let provider = provider().await;
    let stranger = token(&pair(), json!({"alg": "EdDSA"}), &claims(&provider.address));
    for (path, most) in [("/keys", 1), ("/long", 0)] {
        let source = JwksSource::Url(format!("{}{path}", provider.address));
        let world = world_with(|builder| builder.tokens(options(&provider.address, source))).await;
        provider.asked.store(0, Ordering::Relaxed);
        for _ in 0..20 {
            let answer = world.get(&stranger, "/v1/me").await;
            assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE, "{}", answer.text());
        }
        assert_eq!(provider.asked.load(Ordering::Relaxed), most, "{path}");
        assert_eq!(world.get(&world.invoker, "/v1/me").await.status, StatusCode::OK, "keys still count");
    }
    let bad = options("https://id.example", JwksSource::Url("http://id.example/keys".into()));
    assert!(bad.check().unwrap_err().contains("https"));
}

#[tokio::test]
async fn who_is_not_let_in_is_told_now_and_then() {
    let world = world().await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let stop = tokio_util::sync::CancellationToken::new();
    let serving = tokio::spawn(world.server.serve(vec![haft_server::Listener::Tcp(listener)], stop.clone()));
    let ask = async |key: &str| {
        let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
        let request = format!("GET /v1/me HTTP/1.1\r\nHost: x\r\n{key}Connection: close\r\n\r\n");
        tokio::io::AsyncWriteExt::write_all(&mut stream, request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        tokio::io::AsyncReadExt::read_to_string(&mut stream, &mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
    };
    ask("Authorization: Bearer haft_guess\r\n").await;
    for _ in 0..100 {
        if !world.refused.lock().unwrap().is_empty() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(world.refused.lock().unwrap()[0].unknown, 1, "the first one at once");
    for _ in 0..30 {
        ask("Authorization: Bearer haft_guess\r\n").await;
    }
    ask("").await;
    assert_eq!(world.refused.lock().unwrap().len(), 1, "one record a minute");
    stop.cancel();
    serving.await.unwrap().unwrap();
    let told = world.refused.lock().unwrap();
    assert_eq!((told.len(), told[1].unknown, told[1].without), (2, 30, 1), "the rest at the end");
    assert_eq!(told[1].addresses.get("127.0.0.1"), Some(&31));
}
