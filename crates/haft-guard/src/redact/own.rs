//! Shapes of secrets that the collection of rules does not have, or has only next to a name.
//!
//! All of them are certain enough to be taken out of results: a beginning of their own, or a frame that nothing else
//! has.

use super::shape::{End, Frame, Shape};

/// A token that is known by how it begins.
const fn token(kind: &'static str, literals: &'static [&'static str], value: &'static str) -> Shape {
    Shape::token(kind, kind, literals, value, End::Word).at_boundary()
}

/// A value that is known by what stands before it.
const fn framed(
    kind: &'static str,
    literals: &'static [&'static str],
    frame: Frame,
    value: &'static str,
    end: End,
) -> Shape {
    Shape::framed(kind, kind, literals, frame, value, end).also_in_results()
}

/// The beginnings of Discord's tokens: the number of a bot, in base64.
const DISCORD: &[&str] = &[
    "mta", "mte", "mti", "mtm", "mtq", "mtu", "mty", "mtc", "mtg", "mtk", "mja", "mje", "mji", "mjm", "mjq",
    "mju", "mjy", "mjc", "mjg", "mjk", "mza", "mze", "mzi", "mzm", "mzq", "mzu", "mzy", "mzc", "mzg", "mzk",
    "nda", "nde", "ndi", "ndm", "ndq", "ndu", "ndy", "ndc", "ndg", "ndk", "nta", "nte", "nti", "ntm", "ntq",
    "ntu", "nty", "ntc", "ntg", "ntk", "nja", "nje", "nji", "njm", "njq", "nju", "njy", "njc", "njg", "njk",
    "nza", "nze", "nzi", "nzm", "nzq", "nzu", "nzy", "nzc", "nzg", "nzk", "oda", "ode", "odi", "odm", "odq",
    "odu", "ody", "odc", "odg", "odk", "ota", "ote", "oti", "otm", "otq", "otu", "oty", "otc", "otg", "otk",
];

/// Names of secrets in the query of a URL, also where its `&` is written out.
#[rustfmt::skip]
const URL_KEYS: &[&str] = &[
    "?api_key=", "?apikey=", "?api-key=", "?access_token=", "?auth_token=", "?refresh_token=", "?client_secret=",
    "?token=", "&api_key=", "&apikey=", "&api-key=", "&access_token=", "&auth_token=", "&refresh_token=",
    "&client_secret=", "&token=", "amp;api_key=", "amp;apikey=", "amp;api-key=", "amp;access_token=",
    "amp;auth_token=", "amp;refresh_token=", "amp;client_secret=", "amp;token=", "u0026api_key=", "u0026apikey=",
    "u0026api-key=", "u0026access_token=", "u0026auth_token=", "u0026refresh_token=", "u0026client_secret=",
    "u0026token=",
];

/// All of them.
#[rustfmt::skip]
pub(super) const OWN: &[Shape] = &[
    // Google.
    token("google-client-secret", &["gocspx-"], r"GOCSPX-[A-Za-z0-9_-]{20,40}"),
    token("google-access-token", &["ya29."], r"ya29\.[A-Za-z0-9_.-]{20,}"),
    token("google-refresh-token", &["1//0"], r"1//0[A-Za-z0-9_-]{30,}"),
    // Registries of packages and images.
    token("docker-token", &["dckr_pat_", "dckr_oat_"], r"dckr_[po]at_[A-Za-z0-9_-]{20,60}"),
    framed("npmrc-auth", &["_authtoken", "_auth", "_password"], Frame::Name(r#"[ \t]{0,5}=[ \t]{0,5}"?"#), r"[A-Za-z0-9_\-+/=~.]{8,}", End::Item).with_digit().at_boundary(),
    token("crates-io-token", &["cio"], r"cio[A-Za-z0-9]{32}").with_digit(),
    token("artifactory-key", &["akcp"], r"AKCp[A-Za-z0-9]{40,100}").with_digit(),
    token("nuget-key", &["oy2"], r"oy2[a-z0-9]{43}"),
    framed("docker-config-auth", &["\"auth\""], Frame::After(r#"[ \t\r\n]{0,20}:[ \t\r\n]{0,20}""#), r"[A-Za-z0-9+/]{16,}={0,2}", End::Byte(b'"')).entropy(3.0),
    // Messengers.
    Shape::token("telegram-bot-token", "telegram-bot-token", &[":aa"], r"[0-9]{8}:AA[A-Za-z0-9_-]{32,34}", End::Word).back(8),
    token("discord-token", DISCORD, r"[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,40}"),
    Shape::token("discord-webhook", "discord-webhook", &["/api/webhooks/"], r"/api/webhooks/[0-9]{16,20}/[A-Za-z0-9_-]{60,80}", End::Word),
    Shape::token("teams-webhook", "teams-webhook", &["/incomingwebhook/"], r"/IncomingWebhook/[a-f0-9]{32}/[a-f0-9-]{36}", End::Word),
    // Models and what is around them.
    token("groq-key", &["gsk_"], r"gsk_[A-Za-z0-9]{40,64}"),
    token("xai-key", &["xai-"], r"xai-[A-Za-z0-9]{60,}"),
    token("replicate-token", &["r8_"], r"r8_[A-Za-z0-9]{35,42}"),
    token("huggingface-token", &["hf_"], r"hf_[A-Za-z0-9]{34,40}"),
    token("openrouter-key", &["sk-or-"], r"sk-or-v1-[a-f0-9]{48,80}"),
    token("openai-key", &["sk-"], r"sk-[A-Za-z0-9]{48}|sk-(?:proj|svcacct|admin)-[A-Za-z0-9_-]{40,}").with_digit(),
    // DeepSeek and others that answer as OpenAI does.
    token("sk-key", &["sk-"], r"sk-[a-f0-9]{32}").with_digit(),
    token("langfuse-key", &["sk-lf-"], r"sk-lf-[a-f0-9]{8}(?:-[a-f0-9]{4}){3}-[a-f0-9]{12}"),
    token("anthropic-key", &["sk-ant-"], r"sk-ant-[a-z0-9]{3,10}-[A-Za-z0-9_-]{40,}"),
    token("nvidia-key", &["nvapi-"], r"nvapi-[A-Za-z0-9_-]{60,80}"),
    token("fireworks-key", &["fw_"], r"fw_[A-Za-z0-9]{22,24}").with_digit(),
    token("together-key", &["tgp_v1_"], r"tgp_v1_[A-Za-z0-9_-]{40,60}"),
    token("langsmith-key", &["lsv2_"], r"lsv2_(?:pt|sk)_[a-f0-9]{32}_[a-f0-9]{10}"),
    token("pinecone-key", &["pcsk_"], r"pcsk_[A-Za-z0-9_]{50,90}"),
    token("jina-key", &["jina_"], r"jina_[A-Za-z0-9_-]{50,70}"),
    token("e2b-key", &["e2b_"], r"e2b_[a-f0-9]{40}"),
    token("tavily-key", &["tvly-"], r"tvly-(?:dev-|prod-)?[A-Za-z0-9]{30,50}"),
    token("wandb-key", &["wandb_v1_"], r"wandb_v1_[A-Za-z0-9_]{40,}"),
    // Services.
    token("new-relic-key", &["nrak-", "nrii-", "nrjs-", "nrra-", "nraa-"], r"NR(?:AK|II|JS|RA|AA)-[A-Za-z0-9_-]{19,48}"),
    token("notion-token", &["ntn_"], r"ntn_[A-Za-z0-9]{40,60}"),
    token("notion-secret", &["secret_"], r"secret_[A-Za-z0-9]{43}").with_digit(),
    token("supabase-token", &["sbp_"], r"sbp_(?:v0_)?[a-f0-9]{40}"),
    token("supabase-secret", &["sb_secret_"], r"sb_secret_[A-Za-z0-9_-]{20,60}"),
    token("figma-token", &["figd_", "figo_", "figu_"], r"fig[dou]_[A-Za-z0-9_-]{36,60}"),
    token("tailscale-key", &["tskey-"], r"tskey-(?:[a-z]{2,12}-)?[A-Za-z0-9]{6,24}(?:CNTRL)?-[A-Za-z0-9]{16,48}"),
    token("posthog-key", &["phx_", "phs_"], r"ph[xs]_[A-Za-z0-9]{40,60}"),
    token("resend-key", &["re_"], r"re_[A-Za-z0-9]{8,10}_[A-Za-z0-9]{22,26}").with_digit(),
    token("stripe-webhook-secret", &["whsec_"], r"whsec_[A-Za-z0-9+/]{32,64}={0,2}"),
    token("square-secret", &["sq0csp-"], r"sq0csp-[A-Za-z0-9_-]{40,50}"),
    token("paypal-token", &["access_token$production$"], r"access_token\$production\$[a-z0-9]{16}\$[a-f0-9]{32}"),
    token("contentful-token", &["cfpat-"], r"CFPAT-[A-Za-z0-9_-]{40,50}"),
    token("hubspot-token", &["pat-na1-", "pat-eu1-", "pat-na2-", "pat-ap1-"], r"pat-[a-z]{2}[0-9]-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"),
    token("bitbucket-token", &["bbdc-"], r"BBDC-[A-Za-z0-9+/]{40,60}"),
    token("atlassian-token", &["atctt3", "atbb"], r"ATCTT3[A-Za-z0-9_\-=]{150,}|ATBB[A-Za-z0-9]{32}"),
    token("mailgun-key", &["key-"], r"key-[a-f0-9]{32}").with_digit(),
    token("trello-token", &["atta"], r"ATTA[a-f0-9]{64,80}"),
    token("doppler-token", &["dp.st.", "dp.sa.", "dp.ct.", "dp.scim."], r"dp\.(?:st|sa|ct|scim)\.(?:[a-z0-9\-_]{2,35}\.)?[A-Za-z0-9]{40,44}"),
    token("render-key", &["rnd_"], r"rnd_[A-Za-z0-9]{28,40}").with_digit(),
    token("neon-key", &["napi_"], r"napi_[a-z0-9]{50,80}"),
    token("mapbox-secret", &["sk.eyj"], r"sk\.eyJ[A-Za-z0-9_-]{40,}\.[A-Za-z0-9_-]{16,30}"),
    token("sonar-token", &["sqp_", "squ_", "sqa_"], r"sq[pua]_[a-f0-9]{40}"),
    token("buildkite-token", &["bkua_", "bkct_"], r"bk(?:ua|ct)_[a-f0-9]{40,64}"),
    token("circleci-token", &["ccipat_", "ccipat"], r"CCIPAT_[A-Za-z0-9]{20,24}_[a-f0-9]{40}"),
    token("gitea-token", &["gto_"], r"gto_[a-z0-9]{48,56}"),
    token("pulumi-token", &["pul-"], r"pul-[a-f0-9]{40}"),
    token("zapier-token", &["zpka_"], r"zpka_[a-f0-9]{32}_[a-f0-9]{8}"),
    token("vercel-token", &["vcp_", "vci_", "vca_", "vcr_", "vck_"], r"vc[piark]_[A-Za-z0-9]{40,64}"),
    token("sentry-token", &["sntrys_"], r"sntrys_[A-Za-z0-9+/=_-]{40,500}"),
    token("netlify-token", &["nfp_", "nfc_", "nfo_", "nfu_"], r"nf[pcou]_[A-Za-z0-9]{36,60}"),
    Shape::token("mailchimp-key", "mailchimp-key", &["-us"], r"[0-9a-f]{32}-us[0-9]{1,2}", End::Word).back(32).at_boundary(),
    framed("okta-token", &["ssws"], Frame::After(r"[ \t]{1,5}"), r"00[A-Za-z0-9_-]{38,42}", End::Value).at_boundary(),
    token("gitlab-token", &["glpat-", "glptt-", "gldt-", "glrt-", "glsoat-", "glcbt-"], r"gl(?:pat|ptt|dt|rt|soat|cbt)-[A-Za-z0-9_.-]{20,}"),
    // Clouds, clusters and networks.
    token("google-hmac-key", &["goog1e"], r"GOOG1E[A-Z0-9]{40,60}"),
    framed("kubernetes-key", &["client-key-data"], Frame::Name(r#"["']?[ \t]{0,5}:[ \t]{0,5}["']?"#), r"[A-Za-z0-9+/]{40,}={0,2}", End::Value),
    framed("wireguard-key", &["privatekey", "presharedkey"], Frame::Name(r#"["']?[ \t]{0,5}[:=][ \t]{0,5}["']?"#), r"[A-Za-z0-9+/]{43}=", End::Value).entropy(3.5),
    framed("putty-key", &["private-lines"], Frame::Name(r":[ \t]{0,3}[0-9]{1,3}(?:\r?\n|(?:\\r)?\\n)"), r"(?:[A-Za-z0-9+/]{64}(?:\r?\n|(?:\\r)?\\n))*[A-Za-z0-9+/]{2,64}={0,2}", End::Value),
    framed("azure-account-key", &["accountkey", "sharedaccesskey"], Frame::Name(r"[ \t]{0,3}="), r"[A-Za-z0-9+/]{40,}={0,2}", End::Value),
    framed("azure-sas", &["sig="], Frame::After(""), r"[A-Za-z0-9%+/]{40,80}(?:%3D|=){1,2}", End::Value),
    framed("aws-signature", &["x-amz-signature=", "x-amz-security-token="], Frame::After(""), r"[A-Za-z0-9%+/=_-]{40,}", End::Free),
    framed("aws-secret-key", &["aws_secret_access_key", "aws_session_token", "secretaccesskey"], Frame::Name(r#"["']?[ \t]{0,5}[:=][ \t]{0,5}["']?"#), r"[A-Za-z0-9/+=]{40,}", End::Value).entropy(3.5),
    // Names and passwords.
    framed("url-password", &["://"], Frame::After(r#"[^/\s:@"'<>]{0,64}:"#), r#"[^/\s@"'<>]{3,128}"#, End::Byte(b'@')),
    framed("connection-password", &[";password", ";pwd"], Frame::Name(r"[ \t]{0,3}=[ \t]{0,3}"), r#"[^;"'\s]{3,128}"#, End::Item),
    framed("jdbc-password", &["jdbc:"], Frame::After(r#"[^\s"'<>]*[?;&,](?:password|pwd)="#), r#"[^$<{\[\s;&,"'][^;&,"'\s<>]{2,127}"#, End::Item),
    framed("jdbc-password", &["jdbc:oracle:"], Frame::After(r#"[a-z]{1,8}:[^/\s"'<>@]{1,64}/"#), r#"[^$<{\[\s/@"'][^/@"'\s<>]{2,127}"#, End::Byte(b'@')),
    framed("url-key", URL_KEYS, Frame::After(""), r"[A-Za-z0-9._~%+/=-]{16,}", End::Free).with_digit().entropy(3.0),
    framed("curl-password", &["curl"], Frame::After(r#"[^\r\n]*[ \t](?-i:-u|--user|--proxy-user|-U)[= \t]{0,3}["']?[^\s:"'$/\[]{1,64}:"#), r#"[^$<{\[\s"':/\\][^\s"'\\]{2,127}"#, End::Item).at_boundary(),
    framed("sshpass-password", &["sshpass"], Frame::After(r#"[ \t]+(?-i:-p)[ \t]*["']?"#), r#"[^$<{\[\s"'\\-][^\s"'\\]{2,127}"#, End::Item).at_boundary(),
    framed("pgpass-password", &[":5432:", ":5433:", ":6432:", ":*:"], Frame::After(r"[A-Za-z0-9_*.-]{1,63}:[A-Za-z0-9_*.@-]{1,63}:"), r#"(?:\\[:\\]|[^\s:\\"'<>]){3,128}"#, End::Strict),
    framed("netrc-password", &["machine"], Frame::After(r"[ \t]+[^\s]+[ \t\r\n]+(?:login[ \t]+[^\s]+[ \t\r\n]+)?(?:account[ \t]+[^\s]+[ \t\r\n]+)?password[ \t]+"), r"[^\s]{3,}", End::Item),
    framed("environment-password", &["pgpassword", "mysql_pwd", "redis_password", "redisauth"], Frame::Name(r#"=["']?"#), r#"[^\s"']{3,}"#, End::Item),
    framed("password-hash", &["$2a$", "$2b$", "$2y$", "$argon2", "$6$", "$y$"], Frame::After(""), r"[A-Za-z0-9./$=,+]{30,}", End::Free).entropy(3.5),
    // Headers.
    framed("authorization", &["authorization"], Frame::Name(r#"["']?[ \t]{0,5}[:=][ \t]{0,5}["']?(?:basic|bearer|token|digest|apikey|api-token|bot)[ \t]+"#), r"[\w=~@.+/:-]{8,}", End::Free).with_digit().entropy(2.75),
    framed("api-key-header", &["x-api-key", "x-auth-token", "x-access-token", "private-token", "x-goog-api-key", "api-key"], Frame::Name(r#"["']?[ \t]{0,5}:[ \t]{0,5}["']?"#), r"[\w=~@.+/-]{16,}", End::Item).with_digit().entropy(3.0),
    framed("session-cookie", &["sessionid", "session_id", "session_token", "session-token", "connect.sid", "phpsessid", "jsessionid"], Frame::After("="), r"[A-Za-z0-9%._~+/-]{16,}", End::Item).with_digit().entropy(3.0),
    // Words that open a purse.
    framed("seed-phrase", &["mnemonic", "seed phrase", "seed_phrase", "seedphrase", "recovery phrase", "recovery_phrase", "secret phrase", "wallet seed"], Frame::After(r#"["']?(?:[ \t]+(?:is|words))?[ \t]{0,3}[:=]?[ \t\r\n]{1,4}["']?|["']?[:=]["']?"#), r"(?:[a-z]{3,8}[ \t]+){11,23}[a-z]{3,8}", End::Free),
];
