//! A PostgreSQL server for one test, from Debian's package.

use std::{
    fs, io,
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

/// A server that nobody else can reach: it listens on a socket in a folder of its own, and on a port of the loopback
/// interface where that was asked for. It ends when this is dropped.
pub struct Postgres {
    folder: tempfile::TempDir,
    process: Child,
    port: u16,
}

/// A certificate and its key, both PEM.
pub struct ServerCertificate<'a> {
    /// The certificate, with those between it and its authority.
    pub certificate: &'a str,
    /// The private key of the certificate.
    pub key: &'a str,
}

/// Debian's package puts the programs there; they are not on the path.
fn programs() -> Option<PathBuf> {
    let mut found: Vec<_> = fs::read_dir("/usr/lib/postgresql")
        .ok()?
        .filter_map(|version| Some(version.ok()?.path().join("bin")))
        .filter(|bin| bin.join("initdb").exists() && bin.join("postgres").exists())
        .collect();
    found.sort();
    found.pop()
}

/// PostgreSQL does not run as root: then it runs as the user that its package made.
fn as_ordinary_user(program: &Path) -> Command {
    let is_root = Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout.starts_with(b"0\n"));
    if !is_root {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups", "--"]).arg(program);
    command
}

/// Gives something to the server's user, where that is another one.
fn hand_over(path: &Path) {
    let _ = Command::new("chown").arg("postgres:postgres").arg(path).output();
}

/// Writes a file that only the server's user reads.
fn private(path: &Path, text: &str) -> io::Result<()> {
    fs::write(path, text)?;
    #[cfg(unix)]
    fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    hand_over(path);
    Ok(())
}

impl Postgres {
    /// Starts one that listens on its socket only; says why where it cannot.
    pub fn start() -> Result<Self, String> {
        Self::start_with(None)
    }

    /// Starts one that listens on `localhost`, too, and offers encryption there with that certificate.
    pub fn start_encrypted(certificate: &ServerCertificate<'_>) -> Result<Self, String> {
        Self::start_with(Some(certificate))
    }

    fn start_with(certificate: Option<&ServerCertificate<'_>>) -> Result<Self, String> {
        let text = |error: io::Error| error.to_string();
        let bin = programs().ok_or("PostgreSQL is not installed")?;
        let folder = tempfile::tempdir().map_err(text)?;
        hand_over(folder.path());
        let data = folder.path().join("data");
        let made = as_ordinary_user(&bin.join("initdb"))
            .args(["--username=haft", "--auth=trust", "--no-sync", "--encoding=UTF8", "--locale=C", "-D"])
            .arg(&data)
            .output()
            .map_err(text)?;
        if !made.status.success() {
            return Err(String::from_utf8_lossy(&made.stderr).into_owned());
        }
        // Free a moment ago; should somebody else have taken it, the server does not come up, and says so.
        let port = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).map_err(text)?.port();
        let mut server = as_ordinary_user(&bin.join("postgres"));
        server.arg("-D").arg(&data).arg("-k").arg(folder.path());
        let mut settings = vec![format!("port={port}"), "max_connections=50".to_owned()];
        match certificate {
            None => settings.push("listen_addresses=".to_owned()),
            Some(certificate) => {
                private(&folder.path().join("server.pem"), certificate.certificate).map_err(text)?;
                private(&folder.path().join("server.key"), certificate.key).map_err(text)?;
                let file = |name: &str| folder.path().join(name).display().to_string();
                settings.extend(["listen_addresses=127.0.0.1,::1".to_owned(), "ssl=on".to_owned()]);
                settings.push(format!("ssl_cert_file={}", file("server.pem")));
                settings.push(format!("ssl_key_file={}", file("server.key")));
            }
        }
        for setting in &settings {
            server.args(["-c", setting]);
        }
        let process = server.stdout(Stdio::null()).stderr(Stdio::null()).spawn().map_err(text)?;
        let server = Postgres { folder, process, port };
        let end = Instant::now() + Duration::from_secs(60);
        while server.sql("SELECT 1").is_err() {
            if Instant::now() > end {
                return Err("the server does not come up".to_owned());
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(server)
    }

    /// The port, on the loopback interface and as a part of the socket's name.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// An address by which it is reached through its socket.
    pub fn address(&self) -> String {
        format!("host={} port={} user=haft dbname=postgres", self.folder.path().display(), self.port)
    }

    /// What `psql` says to that, as an administrator.
    pub fn sql(&self, sql: &str) -> Result<String, String> {
        let port = self.port.to_string();
        let output = Command::new("psql")
            .args([
                "-X",
                "-A",
                "-t",
                "-U",
                "haft",
                "-d",
                "postgres",
                "-v",
                "ON_ERROR_STOP=1",
                "-p",
                &port,
                "-h",
            ])
            .arg(self.folder.path())
            .args(["-c", sql])
            .output()
            .map_err(|error| error.to_string())?;
        match output.status.success() {
            true => Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned()),
            false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        }
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // SIGINT: a fast shutdown, which ends its children, too.
        let _ = Command::new("kill").args(["-INT", &self.process.id().to_string()]).status();
        let _ = self.process.wait();
    }
}
