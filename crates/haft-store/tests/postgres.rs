//! The suite for stores on PostgreSQL. Each test binary starts a server of its own, in a private folder.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs,
    unreachable_pub,
    reason = "a test says what it expects, and fails where that is not so"
)]

mod suite;

use haft_core::port::{Store as _, StoreError};
use haft_store::{DurableStore, Options, PostgresPlace};
use haft_testkit::{Postgres, ServerCertificate};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use std::{path::Path, time::Duration};
use suite::{Home, durable, make::call, port};

fn place(server: &Postgres, schema: &str) -> PostgresPlace {
    PostgresPlace { schema: schema.to_owned(), ..PostgresPlace::new(server.address()) }
}

struct Schema<'a> {
    server: &'a Postgres,
    name: &'a str,
    keys: tempfile::TempDir,
}

impl Home for Schema<'_> {
    fn open_with(&self, options: Options) -> DurableStore {
        DurableStore::open_postgres(&place(self.server, self.name), self.keys.path(), options)
            .expect("it opens")
    }

    fn crash(&self, store: DurableStore) {
        let name = format!("haft {}", store.instance());
        std::mem::forget(store);
        let ended = format!(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = '{name}'"
        );
        assert_eq!(self.server.sql(&ended).unwrap(), "t", "its connection is there");
        let gone = format!("SELECT count(*) FROM pg_stat_activity WHERE application_name = '{name}'");
        while self.server.sql(&gone).unwrap() != "0" {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

fn refused(opened: Result<DurableStore, StoreError>) -> String {
    match opened {
        Ok(_) => panic!("it opened"),
        Err(error) => error.0,
    }
}

/// One server for all: starting one takes longer than everything else.
#[tokio::test]
async fn postgres_keeps_the_port_and_outlives_the_process() {
    let server = match Postgres::start() {
        Ok(server) => server,
        Err(why) => return haft_testkit::not_run("postgres_keeps_the_port_and_outlives_the_process", &why),
    };
    let schema = |name| Schema { server: &server, name, keys: tempfile::tempdir().unwrap() };
    port::run(&schema("effects").open()).await;
    port::run(&schema("whole").open_full()).await;
    durable::run(&schema("durable")).await;
    the_chain_verifies(&schema("chain")).await;
    a_lost_connection_comes_back(&schema("lost")).await;
    layouts_go_up_and_down(&schema("layouts")).await;
}

/// seeds/000 §6.1: the table is in the schema agent_tools. What an earlier haft has in `haft` is not passed over.
#[tokio::test(flavor = "multi_thread")]
async fn the_usual_schema_is_agent_tools() {
    let server = match Postgres::start() {
        Ok(server) => server,
        Err(why) => return haft_testkit::not_run("the_usual_schema_is_agent_tools", &why),
    };
    let keys = tempfile::tempdir().unwrap();
    let usual = PostgresPlace::new(server.address());
    let earlier = PostgresPlace { schema: "haft".to_owned(), ..usual.clone() };
    drop(DurableStore::open_postgres(&earlier, keys.path(), Options::default()).unwrap());
    let error = refused(DurableStore::open_postgres(&usual, keys.path(), Options::default()));
    assert!(error.contains("ALTER SCHEMA haft RENAME TO agent_tools"), "{error}");
    server.sql("DROP SCHEMA IF EXISTS agent_tools; ALTER SCHEMA haft RENAME TO agent_tools").unwrap();
    let store = DurableStore::open_postgres(&usual, keys.path(), Options::default()).unwrap();
    store.outcome(call("t", "tool").outcome()).await.unwrap();
    assert_eq!(store.for_tenant("t").audit(10).await.unwrap().len(), 1);
    server
        .sql("SELECT id, parameters_json, error_message, metadata_json FROM agent_tools.tool_executions")
        .unwrap();
}

async fn the_chain_verifies(home: &Schema<'_>) {
    let (one, other) = (home.open(), home.open());
    for n in 0..20 {
        let store = if n % 2 == 0 { &one } else { &other };
        let call = call("t", "tool");
        store.intent(call.intent()).await.unwrap();
        store.outcome(call.outcome()).await.unwrap();
    }
    let verified = other.verify(None, &[]).await.unwrap();
    assert_eq!((verified.last, verified.bad), (20, None), "two processes, one chain");
    for (change, back, first_bad) in [
        (
            "INSERT INTO chain.audit_log SELECT -5, body, digest, mac FROM chain.audit_log WHERE seq = 2",
            "DELETE FROM chain.audit_log WHERE seq = -5",
            -5,
        ),
        (
            "INSERT INTO chain.audit_log SELECT 5000, body, digest, mac FROM chain.audit_log WHERE seq = 2",
            "DELETE FROM chain.audit_log WHERE seq = 5000",
            5000,
        ),
        (
            "ALTER TABLE chain.tool_executions ENABLE ROW LEVEL SECURITY",
            "ALTER TABLE chain.tool_executions DISABLE ROW LEVEL SECURITY",
            20,
        ),
        (
            "CREATE INDEX ix_hiding ON chain.tool_executions (tenant) WHERE seq <> 7",
            "DROP INDEX chain.ix_hiding",
            20,
        ),
    ] {
        home.server.sql(change).unwrap();
        let bad = one.verify(None, &[]).await.unwrap().bad;
        assert_eq!(bad.as_ref().map(|bad| bad.seq), Some(first_bad), "{change}: {bad:?}");
        home.server.sql(back).unwrap();
        assert_eq!(one.verify(None, &[]).await.unwrap().bad, None, "{back}");
    }
    home.server.sql("UPDATE chain.audit_log SET body = replace(body, 'tool', 'fool') WHERE seq = 7").unwrap();
    assert_eq!(one.verify(None, &[]).await.unwrap().bad.unwrap().seq, 7);
}

async fn a_lost_connection_comes_back(home: &Schema<'_>) {
    let store = home.open();
    let before = call("t", "before");
    store.outcome(before.outcome()).await.unwrap();
    home.server
        .sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'haft %'")
        .unwrap();
    // What is told as not written is kept, and written once the server is there again.
    let (first, second) = (call("t", "first"), call("t", "second"));
    let error = store.outcome(first.outcome()).await.unwrap_err();
    assert!(error.0.contains("connects again by itself"), "{error}");
    store.outcome(second.outcome()).await.unwrap();
    let tools: Vec<_> =
        store.for_tenant("t").audit(10).await.unwrap().iter().map(|r| r.tool.to_string()).collect();
    assert_eq!(tools.len(), 3, "each once: {tools:?}");
    assert_eq!(store.verify(None, &[]).await.unwrap().bad, None);
}

async fn layouts_go_up_and_down(home: &Schema<'_>) {
    for from in 0..=DurableStore::LAYOUT {
        let store = home.open();
        store.outcome(call("t", "tool").outcome()).await.unwrap();
        drop(store);
        let place = place(home.server, home.name);
        DurableStore::change_postgres_layout(&place, from).unwrap();
        if (1..DurableStore::LAYOUT).contains(&from) {
            let error = refused(DurableStore::open_postgres(&place, home.keys.path(), Options::default()));
            assert!(error.contains("make a copy with `pg_dump`"), "{error}");
        }
        let allowed = PostgresPlace { may_change_layout: true, ..place };
        let store = DurableStore::open_postgres(&allowed, home.keys.path(), Options::default()).unwrap();
        store.keep_output("t", b"bytes".to_vec()).await.unwrap();
        assert_eq!(store.verify(None, &[]).await.unwrap().bad, None, "from {from}");
    }
}

/// An authority that somebody made, and a certificate of it for `localhost`.
struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Authority {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Authority { issuer: CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap() }
    }

    fn write(&self, path: &Path) {
        std::fs::write(path, self.issuer.pem()).unwrap();
    }

    fn certificate(&self) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(["localhost".to_owned()]).unwrap();
        (params.signed_by(&key, &self.issuer).unwrap().pem(), key.serialize_pem())
    }
}

#[tokio::test]
async fn what_is_encrypted_and_whom_that_trusts() {
    let (authority, other) = (Authority::new(), Authority::new());
    let (certificate, key) = authority.certificate();
    let server = ServerCertificate { certificate: &certificate, key: &key };
    let server = match Postgres::start_encrypted(&server) {
        Ok(server) => server,
        Err(why) => return haft_testkit::not_run("what_is_encrypted_and_whom_that_trusts", &why),
    };
    let folder = tempfile::tempdir().unwrap();
    let (known, wrong) = (folder.path().join("known ca.pem"), folder.path().join("wrong.pem"));
    authority.write(&known);
    other.write(&wrong);
    std::fs::write(folder.path().join("empty.pem"), "").unwrap();
    let port = server.port();
    let open = |words: String| {
        let place = PostgresPlace::new(format!("port={port} user=haft dbname=postgres {words}"));
        DurableStore::open_postgres(&place, &folder.path().join("keys"), Options::default())
    };
    let (known, wrong) =
        (format!("sslrootcert='{}'", known.display()), format!("sslrootcert={}", wrong.display()));
    std::fs::create_dir(folder.path().join("keys")).unwrap();

    for (words, encrypted) in [
        ("host=localhost".to_owned(), "f"),
        ("host=localhost sslmode=disable".to_owned(), "f"),
        ("host=localhost sslmode=require".to_owned(), "t"),
        ("host=127.0.0.1 sslmode=require".to_owned(), "t"),
        (format!("host=localhost sslmode=require {known}"), "t"),
        (format!("host=127.0.0.1 sslmode=verify-ca {known}"), "t"),
        (format!("host=localhost sslmode=verify-full {known}"), "t"),
        (format!("host=localhost hostaddr=127.0.0.1 sslmode=verify-full {known}"), "t"),
    ] {
        let store = open(words.clone()).unwrap_or_else(|error| panic!("{words}: {error}"));
        store.outcome(call("t", "tool").outcome()).await.unwrap();
        assert_eq!(store.for_tenant("t").audit(1).await.unwrap().len(), 1, "readers connect, too");
        let seen = server.sql(
            "SELECT string_agg(DISTINCT ssl::text, ',') FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) \
             WHERE application_name LIKE 'haft%'",
        );
        assert!(
            seen.as_ref().is_ok_and(|seen| seen.starts_with(encrypted) && !seen.contains(',')),
            "{words}: {seen:?}"
        );
    }
    let by_url = format!(
        "postgres://haft@localhost:{port}/postgres?sslmode=verify-full&sslrootcert={}",
        folder.path().join("known%20ca.pem").display()
    );
    let store = DurableStore::open_postgres(
        &PostgresPlace::new(by_url),
        &folder.path().join("keys"),
        Options::default(),
    );
    assert_eq!(store.unwrap().verify(None, &[]).await.unwrap().bad, None);

    for (words, why) in [
        (format!("host=localhost sslmode=verify-full {wrong}"), "the certificate of the server is refused"),
        (format!("host=localhost sslmode=verify-ca {wrong}"), "the certificate of the server is refused"),
        (format!("host=localhost sslmode=require {wrong}"), "the certificate of the server is refused"),
        ("host=localhost sslmode=verify-full sslrootcert=system".to_owned(), "sslrootcert=PATH"),
        (format!("host=127.0.0.1 sslmode=verify-full {known}"), "not valid for name"),
        ("host=localhost sslmode=verify-full sslrootcert=/nowhere.pem".to_owned(), "/nowhere.pem"),
        (
            format!("host=localhost sslmode=verify-full sslrootcert={}/empty.pem", folder.path().display()),
            "it holds no certificate",
        ),
        ("host=localhost sslmode=verify_full".to_owned(), "verify-full"),
    ] {
        let error = refused(open(words.clone()));
        assert!(error.contains(why), "{words}: {error}");
    }
}

#[tokio::test]
async fn a_server_without_encryption_is_not_spoken_to_where_that_is_asked_for() {
    // Anything that answers `N` to the wish for encryption is such a server.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let heard = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut wish = [0; 8];
        std::io::Read::read_exact(&mut stream, &mut wish).unwrap();
        std::io::Write::write_all(&mut stream, b"N").unwrap();
        let mut rest = Vec::new();
        let _ = std::io::Read::read_to_end(&mut stream, &mut rest);
        rest
    });
    let folder = tempfile::tempdir().unwrap();
    let place = PostgresPlace::new(format!("postgres://haft:secret@127.0.0.1:{port}/haft?sslmode=require"));
    let error = refused(DurableStore::open_postgres(&place, folder.path(), Options::default()));
    assert!(error.contains("does not offer encryption") && !error.contains("secret"), "{error}");
    assert_eq!(heard.join().unwrap(), b"", "nothing was said in the open");
}

#[test]
fn another_machine_is_not_spoken_to_in_the_open_by_accident() {
    let folder = tempfile::tempdir().unwrap();
    for address in [
        "postgres://haft@db.example.invalid/haft?sslmode=prefer",
        "host=db.example.invalid sslmode=allow",
        // Where it goes is what counts, and not what it is called.
        "host=localhost hostaddr=192.0.2.1 user=haft sslmode=prefer",
        "hostaddr=192.0.2.1 user=haft sslmode=prefer",
    ] {
        let place = PostgresPlace::new(address);
        let error = refused(DurableStore::open_postgres(&place, folder.path(), Options::default()));
        assert!(error.contains("`require`") && error.contains("another machine"), "{address}: {error}");
    }
    let place = PostgresPlace { schema: "x; drop".to_owned(), ..PostgresPlace::new("host=/nowhere") };
    assert!(
        refused(DurableStore::open_postgres(&place, folder.path(), Options::default())).contains("schema")
    );
    let nowhere = PostgresPlace::new("host=/nowhere user=haft:secret-word");
    let error = refused(DurableStore::open_postgres(&nowhere, folder.path(), Options::default()));
    assert!(
        error.contains("check that the database server is there") && !error.contains("secret-word"),
        "{error}"
    );
}
