//! What is listed and read, and who is told of changes.

use super::support::*;
use haft::{ToolCtx, ToolError, tool_fn};
use haft_mcp::server::{Callers, Change, McpServer};
use serde_json::{Value, json};

fn names(list: &Value) -> Vec<String> {
    list.as_array().unwrap().iter().map(|entry| entry["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn tools_are_listed_page_by_page_with_what_they_say() {
    for version in LEGACY.into_iter().chain([STATELESS]) {
        let mut wire = Wire::new(&server(haft()).page(3).build(), version, json!({})).await;
        let mut seen = Vec::new();
        let mut cursor = None;
        loop {
            let params = cursor.map_or_else(|| json!({}), |cursor: Value| json!({"cursor": cursor}));
            let page = wire.ask("tools/list", params).await["result"].clone();
            assert!(page["tools"].as_array().unwrap().len() <= 3);
            assert_eq!(page["ttlMs"].is_u64(), version == STATELESS || page.get("ttlMs").is_some());
            seen.extend(page["tools"].as_array().unwrap().clone());
            match page.get("nextCursor") {
                Some(next) => cursor = Some(next.clone()),
                None => break,
            }
        }
        let expected = ["deploy", "echo", "long", "number", "parts", "secret", "slow"];
        assert_eq!(names(&json!(seen)), expected, "{version}");
        assert_eq!(seen[1]["title"], "Echo");
        assert_eq!(seen[1]["annotations"]["readOnlyHint"], true);
        assert_eq!(seen[0]["annotations"]["readOnlyHint"], false);
        assert!(seen[1]["outputSchema"].is_object());
        let wrong = wire.ask("tools/list", json!({"cursor": "nonsense"})).await;
        assert_eq!(wrong["error"]["code"], -32602, "{version}");
    }
}

#[tokio::test]
async fn who_may_not_call_a_tool_is_not_told_of_it() {
    let haft = haft();
    let guest = owner_with(|context| context.permissions = vec!["other.*".into()]);
    let server = McpServer::builder(haft.into_engine(), Callers::One(guest)).build();
    let mut wire = Wire::new(&server, STATELESS, json!({})).await;
    let tools = wire.ask("tools/list", json!({})).await;
    assert!(!names(&tools["result"]["tools"]).contains(&"secret".to_owned()));
    let resources = wire.ask("resources/list", json!({})).await;
    assert!(!names(&resources["result"]["resources"]).contains(&"secret".to_owned()));
    let hidden = wire.ask("resources/read", json!({"uri": "haft://tools/secret"})).await["error"].clone();
    let absent = wire.ask("resources/read", json!({"uri": "haft://tools/nothing"})).await["error"].clone();
    assert_eq!((&hidden["code"], &absent["code"]), (&json!(-32602), &json!(-32602)));
    assert_eq!(
        hidden["message"].as_str().unwrap().replace("secret", "nothing"),
        absent["message"],
        "no difference"
    );
    let call = wire.call("secret", json!({})).await;
    assert_eq!(call["result"]["_meta"]["haft/error"]["code"], "PERMISSION_DENIED");
}

#[tokio::test]
async fn outputs_of_another_tenant_are_not_there() {
    let haft = haft();
    let mut theirs = Wire::new(&server(haft.clone()).build(), STATELESS, json!({})).await;
    let long = theirs.call("long", json!({})).await;
    let uri = long["result"]["_meta"]["haft/output"]["uri"].clone();
    assert!(theirs.ask("resources/read", json!({"uri": uri})).await.get("result").is_some());
    let other = owner_with(|context| context.tenant = "other".into());
    let server = McpServer::builder(haft.into_engine(), Callers::One(other)).build();
    let mut wire = Wire::new(&server, STATELESS, json!({})).await;
    let hidden = wire.ask("resources/read", json!({"uri": uri})).await;
    let absent = wire.ask("resources/read", json!({"uri": "haft://outputs/out_nothing"})).await;
    assert_eq!(hidden["error"]["code"], absent["error"]["code"]);
    assert!(hidden.get("result").is_none());
}

#[tokio::test]
async fn definitions_are_resources() {
    for version in LEGACY.into_iter().chain([STATELESS]) {
        let mut wire = Wire::new(&server(haft()).build(), version, json!({})).await;
        let read = wire.ask("resources/read", json!({"uri": "haft://tools/echo"})).await;
        let text = read["result"]["contents"][0]["text"].as_str().unwrap();
        assert_eq!(serde_json::from_str::<Value>(text).unwrap()["name"], "echo");
        let templates = wire.ask("resources/templates/list", json!({})).await;
        assert_eq!(templates["result"]["resourceTemplates"].as_array().unwrap().len(), 3);
        let expected = if version == STATELESS { -32602 } else { -32002 };
        assert_eq!(
            wire.ask("resources/read", json!({"uri": "x://y"})).await["error"]["code"],
            expected,
            "{version}"
        );
    }
}

#[tokio::test]
async fn a_changed_list_is_told_before_2026() {
    let haft = haft();
    let mut wire = Wire::new(&server(haft.clone()).build(), "2025-11-25", json!({})).await;
    wire.ask("ping", json!({})).await;
    wire.ask("resources/subscribe", json!({"uri": "x://watched"})).await;
    // The one who tells is there when the first change after this is.
    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    let more =
        tool_fn("more", async |_: Given, _: ToolCtx| -> Result<&'static str, ToolError> { Ok("more") });
    haft.register(more.read_only().define(described)).unwrap();
    let told = [wire.line().await["method"].clone(), wire.line().await["method"].clone()];
    assert_eq!(told, ["notifications/tools/list_changed", "notifications/resources/list_changed"]);
    let tools = wire.ask("tools/list", json!({})).await;
    assert!(names(&tools["result"]["tools"]).contains(&"more".to_owned()));
}

#[tokio::test]
async fn a_subscription_hears_what_it_asked_for() {
    let haft = haft();
    let server = server(haft.clone()).build();
    let mut wire = Wire::new(&server, STATELESS, json!({})).await;
    let filter = json!({"toolsListChanged": true, "resourceSubscriptions": ["x://watched"]});
    let id = wire.request("subscriptions/listen", json!({"notifications": filter})).await;
    let acknowledged = wire.line().await;
    assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged");
    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    server.notify(Change::Resource("x://other".into()));
    server.notify(Change::Resource("x://watched".into()));
    let updated = wire.line().await;
    assert_eq!(
        (updated["method"].as_str(), updated["params"]["uri"].as_str()),
        (Some("notifications/resources/updated"), Some("x://watched"))
    );
    haft.tools().set_enabled("echo", false).await.unwrap();
    let changed = wire.line().await;
    assert_eq!(changed["method"], "notifications/tools/list_changed");
    assert_eq!(changed["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], id);
    let tools = wire.ask("tools/list", json!({})).await;
    assert!(!names(&tools["result"]["tools"]).contains(&"echo".to_owned()));
}

#[tokio::test]
async fn revisions_are_negotiated() {
    let server = server(haft()).build();
    let mut wire = Wire::new(&server, STATELESS, json!({})).await;
    let found = wire.ask("server/discover", json!({})).await;
    assert_eq!(found["result"]["supportedVersions"], json!(["2025-06-18", "2025-11-25", "2026-07-28"]));
    assert_eq!(found["result"]["capabilities"]["prompts"], Value::Null, "prompts are not haft's");
    for (method, params) in [
        ("prompts/list", json!({})),
        (
            "completion/complete",
            json!({"ref": {"type": "ref/prompt", "name": "x"}, "argument": {"name": "a", "value": "b"}}),
        ),
        ("tasks/get", json!({"taskId": "x"})),
        ("nothing/known", json!({})),
    ] {
        assert_eq!(wire.ask(method, params).await["error"]["code"], -32601, "{method}");
    }
    wire.version = "1999-01-01".into();
    let unknown = wire.ask("tools/list", json!({"_meta": {"io.modelcontextprotocol/protocolVersion": "1999-01-01", "io.modelcontextprotocol/clientCapabilities": {}}})).await;
    assert_eq!(unknown["error"]["data"]["requested"], "1999-01-01");
}
