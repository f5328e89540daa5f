use super::*;

const FIRST: &str = "\
9:name=systemd:/
8:pids:/
4:memory:/api/5dd2
2:cpu,cpuacct:/
0::/
";
const FIRST_MOUNTS: &str = "\
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory
39 31 0:36 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
";

#[test]
fn each_controller_is_found_below_its_own_path() {
    let found = Hierarchies::parse(FIRST, FIRST_MOUNTS);
    assert_eq!(found.version(), Some("v1"));
    let init = found.init(None, "haft-1");
    assert_eq!(init.memory.unwrap(), Path::new("/sys/fs/cgroup/memory/api/5dd2/haft-1"));
    assert_eq!(init.pids.unwrap(), Path::new("/sys/fs/cgroup/pids/haft-1"));
    assert_eq!(init.kill.unwrap(), Path::new("/sys/fs/cgroup/unified/haft-1"));
    assert_eq!((init.cpu.clone(), init.v2), (init.cpuacct, None));
    let nested = found.init(Some("sandbox"), "haft-2");
    assert_eq!(nested.memory.unwrap(), Path::new("/sys/fs/cgroup/memory/api/5dd2/sandbox/haft-2"));
}

#[test]
fn folders_that_two_controllers_share_are_made_once() {
    let init = Hierarchies::parse(FIRST, FIRST_MOUNTS).init(None, "x");
    assert_eq!(init.folders().len(), 4);
    assert_eq!(init.for_the_init().len(), 3);
}

#[test]
fn a_mount_that_shows_a_part_is_understood() {
    // As in a container without a namespace of cgroups: the path is that of the machine.
    let own = "4:memory:/docker/abc\n";
    let mounts = "35 31 0:32 /docker/abc /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";
    let found = Hierarchies::parse(own, mounts);
    assert_eq!(found.v1["memory"], Path::new("/sys/fs/cgroup/memory"));
}

#[test]
fn the_second_version_is_used_where_it_has_the_controllers() {
    let mounts = "41 31 0:38 / /sys/fs/cgroup rw,relatime - cgroup2 cgroup2 rw\n";
    let mut found = Hierarchies::parse("0::/user.slice/a.scope\n", mounts);
    assert_eq!(found.version(), None);
    found.v2.as_mut().unwrap().1 = vec!["memory".into(), "pids".into()];
    assert_eq!(found.version(), Some("v2"));
    let init = found.init(None, "haft-1");
    assert_eq!(init.v2.unwrap(), Path::new("/sys/fs/cgroup/user.slice/a.scope/haft-1"));
    assert_eq!(init.kill.unwrap(), Path::new("/sys/fs/cgroup/user.slice/a.scope/haft-1/guest"));
}

/// The second version with controllers, as far as files go: no machine of these tests has it.
#[test]
fn the_second_version_is_written_and_read_as_the_kernel_has_it() {
    let root = tempfile::tempdir().unwrap();
    let has = ["memory", "pids", "cpu"].map(str::to_owned).to_vec();
    let found = Hierarchies { v1: BTreeMap::new(), v2: Some((root.path().to_owned(), has)) };
    assert_eq!((found.version(), found.can_kill()), (Some("v2"), true));
    let init = found.init(None, "haft-1");
    init.make().unwrap();
    let folder = root.path().join("haft-1");
    assert!(folder.join("guest").is_dir(), "the guest alone is in a folder below");
    assert_eq!(init.for_the_init(), [&folder]);
    let put = |file: &str, text: &str| fs::write(folder.join(file), text).unwrap();
    let read = |file: &str| fs::read_to_string(folder.join(file)).unwrap();
    put("memory.swap.max", "max");
    put("cpu.max", "max 100000");
    let limits = Limits {
        memory_bytes: Some(64 << 20),
        processes: Some(10),
        cpu_millicores: Some(500),
        ..Limits::default()
    };
    init.limit(&limits, 2).unwrap();
    let all = || ["memory.max", "memory.swap.max", "pids.max", "cpu.max"].map(read);
    assert_eq!(all(), ["67108864", "0", "12", "50000 100000"]);
    // The next guest in the same folder has no limits: nothing of the last one's stays.
    init.limit(&Limits::default(), 2).unwrap();
    assert_eq!(all(), ["max", "max", "max", "max 100000"]);

    put("memory.peak", "1000\n");
    put("cpu.stat", "usage_usec 2500\nuser_usec 2000\nsystem_usec 500\n");
    put("memory.events", "low 0\nhigh 0\nmax 12\noom 2\noom_kill 1\noom_group_kill 0\n");
    put("pids.events", "max 3\n");
    let before = init.before();
    let expected =
        Counted { peak_memory: Some(1000), cpu_micros: Some(2500), out_of_memory: 1, refused_forks: 3 };
    assert_eq!(before, expected);
    assert_eq!(init.cpu_micros(), Some(2500));
    put("cpu.stat", "usage_usec 4000\n");
    let since = init.counted().since(before);
    assert_eq!((since.peak_memory, since.cpu_micros, since.out_of_memory), (None, Some(1500), 0));

    // Jail inits of a sandbox are below it, and have limits of their own.
    put("cgroup.controllers", "cpuset cpu io memory pids\n");
    init.hand_down();
    assert!(["+cpu", "+memory", "+pids"].contains(&&*read("cgroup.subtree_control")));
    let inside = found.init(Some("haft-1"), "haft-2");
    assert_eq!(inside.v2.as_deref(), Some(&*folder.join("haft-2")));
    init.kill();
    assert_eq!(read("cgroup.kill"), "1");
}

#[test]
fn counts_are_those_since_the_guest_came() {
    let before = Counted { peak_memory: Some(9), cpu_micros: Some(100), out_of_memory: 2, refused_forks: 1 };
    let after = Counted { peak_memory: Some(7), cpu_micros: Some(150), out_of_memory: 3, refused_forks: 1 };
    let since = Counted { peak_memory: Some(7), cpu_micros: Some(50), out_of_memory: 1, refused_forks: 0 };
    assert_eq!(after.since(before), since);
}
