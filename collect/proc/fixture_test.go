package proc

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// fake is one process of a made-up /proc.
type fake struct {
	pid, ppid int
	argv      []string // a title as vLLM sets it: one word
	comm      string   // by default the first word's base, cut to 15
	state     string   // by default S
	ticks     int      // start; by default the PID
	env       []string
	fds       []string // targets
	cwd       string
	netns     string // by default ours
	mntns     string // by default ours
	root      string // by default /
	listens   []string
	uid       int
}

// reader is rooftop's own PID in a made-up /proc: one that no made-up process
// has, as the test's real one may (Linux ends at 1<<22, include/linux/threads.h).
const reader = 1 << 22

// mount makes a /proc of the processes and returns it opened. Sockets are
// "ADDR:PORT"; the ones that a process listens on
// it holds too. A process with its own netns gets its own socket table.
func mount(t *testing.T, procs ...fake) FS {
	t.Helper()
	dir := t.TempDir()
	put(t, dir, "stat", "cpu  0 0 0 0 0 0 0 0 0 0\nbtime 1700000000\n")
	tables := map[string]string{}
	seen := map[string]bool{}
	for _, p := range procs {
		for _, l := range p.listens {
			if key := p.netns + " " + l; !seen[key] {
				seen[key] = true
				tables[p.netns] += tcpLine(t, l, p.uid)
			}
		}
	}
	tcp := func(ns string) string { return "  sl  local_address rem_address   st\n" + tables[ns] }
	put(t, dir, "net/tcp", tcp(""))
	self := strconv.Itoa(reader)
	link(t, "net:[1]", dir, self, "ns/net")
	link(t, "mnt:[1]", dir, self, "ns/mnt")
	for _, p := range procs {
		p.put(t, dir, tcp(p.netns))
	}
	for _, p := range procs {
		var children []string
		for _, c := range procs {
			if c.ppid == p.pid {
				children = append(children, strconv.Itoa(c.pid))
			}
		}
		put(t, dir, fmt.Sprintf("%d/task/%d/children", p.pid, p.pid), strings.Join(children, " "))
	}
	f, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	f.self = reader
	return f
}

func (p fake) put(t *testing.T, dir, tcp string) {
	t.Helper()
	pid := strconv.Itoa(p.pid)
	if p.comm == "" && len(p.argv) > 0 {
		p.comm = filepath.Base(p.argv[0])
	}
	p.comm = p.comm[:min(15, len(p.comm))]
	if p.state == "" {
		p.state = "S"
	}
	if p.ticks == 0 {
		p.ticks = p.pid
	}
	put(t, dir, pid+"/stat", statText(p))
	put(t, dir, pid+"/comm", p.comm+"\n")
	put(t, dir, pid+"/status", fmt.Sprintf("Name:\t%s\nUid:\t%d\t%d\t%d\t%d\n", p.comm, p.uid, p.uid, p.uid, p.uid))
	line := strings.Join(p.argv, "\x00") + "\x00"
	if len(p.argv) == 1 {
		line += strings.Repeat("\x00", 40)
	}
	put(t, dir, pid+"/cmdline", line)
	put(t, dir, pid+"/environ", strings.Join(p.env, "\x00")+"\x00")
	put(t, dir, pid+"/net/tcp", tcp)
	put(t, dir, pid+"/task/"+pid+"/schedstat", "5000000 70000000 12\n")
	for i, l := range p.listens {
		link(t, fmt.Sprintf("socket:[%d]", inode(t, l)), dir, pid, "fd", strconv.Itoa(10+i))
	}
	if err := os.MkdirAll(filepath.Join(dir, pid, "fd"), 0o755); err != nil {
		t.Fatal(err)
	}
	for i, target := range p.fds {
		link(t, target, dir, pid, "fd", strconv.Itoa(30+i))
	}
	link(t, or(p.cwd, "/"), dir, pid, "cwd")
	link(t, or(p.root, "/"), dir, pid, "root")
	link(t, "net:["+or(p.netns, "1")+"]", dir, pid, "ns/net")
	link(t, "mnt:["+or(p.mntns, "1")+"]", dir, pid, "ns/mnt")
}

func statText(p fake) string {
	return fmt.Sprintf("%d (%s) %s %d 1 1 0 -1 0 0 0 0 0 250 50 0 0 20 0 7 0 %d 1000 256 0 %s\n", p.pid, p.comm, p.state, p.ppid, p.ticks, strings.Repeat("0 ", 24))
}

func or(s, fallback string) string {
	if s == "" {
		return fallback
	}
	return s
}

func put(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func link(t *testing.T, target string, parts ...string) {
	t.Helper()
	path := filepath.Join(parts...)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
}

// inode numbers a socket by its address.
func inode(t *testing.T, addr string) int {
	t.Helper()
	a, err := netip.ParseAddrPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	return int(a.Addr().As4()[3])*100_000 + int(a.Port())
}

// tcpLine is a listening socket as /proc/net/tcp writes it.
func tcpLine(t *testing.T, addr string, uid int) string {
	t.Helper()
	a, err := netip.ParseAddrPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	b := a.Addr().As4()
	return fmt.Sprintf("   0: %02X%02X%02X%02X:%04X 00000000:0000 0A 00000000:00000000 00:00000000 00000000 %5d        0 %d 1\n", b[3], b[2], b[1], b[0], a.Port(), uid, inode(t, addr))
}

// plain is a server as vLLM 0.32 runs on a machine with one GPU, with PIDs from
// the given one on.
func plain(pid int, listens string, flags ...string) []fake {
	argv := append([]string{"/venv/bin/python3", "/venv/bin/vllm", "serve", "org/model"}, flags...)
	return []fake{
		{pid: pid, ppid: 1, argv: argv, comm: "vllm", listens: []string{listens}},
		{pid: pid + 1, ppid: pid, argv: []string{"/venv/bin/python3", "-c", "from multiprocessing.resource_tracker import main;main(31)"}},
		{pid: pid + 2, ppid: pid, argv: []string{"VLLM::EngineCore"}, listens: []string{fmt.Sprintf("127.0.0.1:%d", 40000+pid)}},
		{pid: pid + 3, ppid: pid + 2, argv: []string{"VLLM::Worker"}, fds: []string{"/dev/nvidiactl", "/dev/nvidia3", "/dev/nvidia-uvm", "/dev/nvidia3", "/dev/dri/card1", "/dev/dri/renderD128", "/dev/null"}},
	}
}

func addrs(t *testing.T, host string) []netip.Addr {
	t.Helper()
	ips, ok := Addresses(host)
	if !ok {
		t.Fatalf("%s is not an address", host)
	}
	return ips
}

// noSecrets prints a server in every way that a log line or a careless %v might.
func noSecrets(t *testing.T, s *Server, secrets ...string) {
	t.Helper()
	texts := map[string]string{"String": s.String(), "problems": fmt.Sprint(s.Health())}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		texts[verb] = fmt.Sprintf(verb, s)
		texts[verb+" of the value"] = fmt.Sprintf(verb, *s)
		texts[verb+" within a slice"] = fmt.Sprintf(verb, []*Server{s})
		texts[verb+" within a struct"] = fmt.Sprintf(verb, struct{ S Server }{*s})
	}
	encoded, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	texts["JSON"] = string(encoded)
	for how, text := range texts {
		for _, secret := range secrets {
			if strings.Contains(text, secret) {
				t.Errorf("%s shows %q: %s", how, secret, text)
			}
		}
	}
}
