//! That guests run at all, and end as they should.

use crate::world::{House, JAILS, block_on, run, sh};
use haft_core::port::{GuestSpec, GuestStdin};
use libtest_mimic::Trial;

pub fn be_haft(_: &[String]) -> i32 {
    0
}

pub fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for jail in JAILS {
        let mut add = |name: &str, test: fn(&'static str)| {
            trials.push(Trial::test(format!("basics::{jail}::{name}"), move || {
                test(jail);
                Ok(())
            }));
        };
        add("says_hello", says_hello);
        add("reads_its_input", reads_its_input);
    }
    trials
}

fn says_hello(jail: &'static str) {
    let house = House::new();
    let (end, heard) = block_on(run(&*house.jail(jail), sh("echo hello; echo oops >&2; exit 3"))).unwrap();
    assert_eq!((heard.out.as_str(), heard.err.as_str(), end.exit_code), ("hello\n", "oops\n", Some(3)));
    println!("{end:?}");
}

fn reads_its_input(jail: &'static str) {
    let house = House::new();
    let stdin = GuestStdin::Bytes(vec![b'x'; 300_000]);
    let (end, heard) = block_on(run(&*house.jail(jail), GuestSpec { stdin, ..sh("wc -c; id; pwd; ls /") })).unwrap();
    assert_eq!(end.exit_code, Some(0), "{heard:?}");
    assert!(heard.out.starts_with("300000"), "{heard:?}");
    println!("{}", heard.out);
}
