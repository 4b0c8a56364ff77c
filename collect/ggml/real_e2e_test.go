//go:build e2e && linux && (amd64 || arm64)

package ggml

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/collect/ggml/binary"
	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// real is a real runtime with a loaded model that takes orders by line (.ci/drive-ggml.mjs).
type real struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

// ggmlHome returns the folder of .ci/install-ggml's runtimes and models.
func ggmlHome() string {
	if dir := os.Getenv("ROOFTOP_E2E_GGML"); dir != "" {
		return dir
	}
	home := os.Getenv("ROOFTOP_E2E_HOME")
	if home == "" {
		cache, _ := os.UserCacheDir()
		home = filepath.Join(cache, "rooftop-e2e")
	}
	return filepath.Join(home, "ggml-1")
}

// startReal starts a runtime of .ci/install-ggml, or skips the test with a message.
func startReal(t *testing.T, name, model string, threads int) *real {
	t.Helper()
	needRoot(t)
	runtime, file := filepath.Join(ggmlHome(), name), filepath.Join(ggmlHome(), "models", model)
	script := filepath.Join("..", "..", ".ci", "drive-ggml.mjs")
	for _, need := range []string{runtime, file, script} {
		if _, err := os.Stat(need); err != nil {
			t.Skipf("NOT CHECKED: a real runtime (%s is missing; .ci/install-ggml gets it)", need)
		}
	}
	cmd := exec.Command("node", script, runtime, file, strconv.Itoa(threads))
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Skipf("NOT CHECKED: a real runtime (%v)", err)
	}
	r := &real{cmd, in, bufio.NewScanner(out)}
	t.Cleanup(func() {
		in.Close()
		cmd.Process.Kill()
		cmd.Wait()
	})
	r.answer(t)
	return r
}

// answer returns the next line of JSON.
func (r *real) answer(t *testing.T) string {
	t.Helper()
	for r.out.Scan() {
		if line := r.out.Text(); strings.HasPrefix(line, "{") {
			return line
		}
	}
	t.Fatalf("the runtime ended: %v", r.out.Err())
	return ""
}

// say sends an order and waits until it is done.
func (r *real) say(t *testing.T, order string) string {
	t.Helper()
	if _, err := io.WriteString(r.in, order+"\n"); err != nil {
		t.Fatal(err)
	}
	return r.answer(t)
}

// attach traces the runtime at a detail.
func (r *real) attach(t *testing.T, d optrace.Detail) *Session {
	t.Helper()
	found, err := binary.FromProcess(r.cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	s, err := Open(found, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	if err := s.SetDetail(d); err != nil {
		t.Fatal(err)
	}
	return s
}

// collect returns the events until there are none for a while.
func collect(t *testing.T, s *Session, quiet time.Duration) []optrace.Event {
	t.Helper()
	var all []optrace.Event
	for {
		ctx, cancel := context.WithTimeout(context.Background(), quiet)
		events, err := s.Next(ctx)
		cancel()
		all = append(all, events...)
		if err != nil {
			return all
		}
	}
}

// Each operator of every token of a real runtime is seen, on every thread, in its graph, and
// nothing is lost.
func TestE2ERealRuntimes(t *testing.T) {
	for _, c := range []struct {
		runtime, model string
		threads, ops   int // operators of a decoded token; 0 is checked for being the same for all
	}{
		{"npm-new", "tiny.gguf", 1, 73}, {"npm-new", "tiny.gguf", 2, 73}, {"npm-new", "moe.gguf", 1, 109},
		{"npm-old", "moe.gguf", 2, 0}, {"npm-old", "tiny.gguf", 1, 0},
		{"npm-static", "tiny.gguf", 1, 73}, {"npm-static", "moe.gguf", 1, 109}, // it computes with one thread whatever it is told
	} {
		t.Run(strings.Join([]string{c.runtime, c.model, strconv.Itoa(c.threads)}, "-"), func(t *testing.T) {
			run := startReal(t, c.runtime, c.model, c.threads)
			before := run.say(t, "run 12 9")
			s := run.attach(t, optrace.LevelTensor)
			after := run.say(t, "run 12 9")
			events := collect(t, s, 60*time.Millisecond)
			checkReal(t, s, events, c.threads, c.ops)
			if a, b := hashOf(before), hashOf(after); a != b || a == "" {
				t.Errorf("tokens differ while watched: %s, %s", before, after)
			}
		})
	}
}

// hashOf returns the hash of the tokens in an answer.
func hashOf(answer string) string {
	_, rest, _ := strings.Cut(answer, `"hash":"`)
	hash, _, _ := strings.Cut(rest, `"`)
	return hash
}

func checkReal(t *testing.T, s *Session, events []optrace.Event, threads, want int) {
	t.Helper()
	tb := s.Tables()
	inGraph, graphs := false, 0
	perGraph := map[int]int{} // operators of a lane in a graph → how often
	lanes := map[uint16]int{}
	shares := map[uint16]bool{}
	for _, e := range events {
		switch e.Kind {
		case optrace.GraphBegin:
			inGraph, lanes = true, map[uint16]int{}
			graphs++
			if e.Ref == 0 {
				t.Error("a graph without its nodes")
			}
		case optrace.GraphEnd:
			inGraph = false
			for _, n := range lanes {
				perGraph[n]++
			}
		case optrace.OpBegin, optrace.FusedBegin:
			if !inGraph {
				t.Fatalf("an operator outside a graph: %+v", e)
			}
			o := tb.Operator(e.Ref)
			switch o.Op {
			case "VIEW", "RESHAPE", "PERMUTE", "TRANSPOSE", "NONE": // builds before 2025-11 send them through
				continue
			case "":
				t.Fatalf("an operator without a name: %+v", e)
			}
			lanes[e.Thread]++
			shares[e.Thread] = true
			if int(e.Threads) > threads {
				t.Fatalf("%+v", e)
			}
		}
	}
	t.Logf("%d events, %d graphs, operators of a graph and how often %v, tables %d %d %d %d", len(events), graphs, perGraph,
		len(tb.Tensors), len(tb.Operators), len(tb.DAGs), len(tb.Experts))
	if graphs != 9 || len(perGraph) > 2 || len(shares) != threads {
		t.Errorf("%d graphs, operators %v, lanes %v of %d", graphs, perGraph, shares, of(events, optrace.OpBegin)[0].Threads)
	}
	if want > 0 && perGraph[want] < 8 {
		t.Errorf("operators of a token: %v, want %d", perGraph, want)
	}
	d := s.decoder
	if s.Dropped() != 0 || d.malformed != 0 || d.misfits != 0 || !s.Target().Verified || d.out.late != 0 {
		t.Errorf("dropped %d, malformed %d, misfits %d, late %d, %+v", s.Dropped(), d.malformed, d.misfits, d.out.late, s.Target())
	}
	for _, c := range tb.Experts {
		if c.Layer < 0 || c.Layer > 3 || c.Used != 2 {
			t.Errorf("%+v", c)
		}
		for i := 0; i < len(c.IDs); i += 2 {
			if a, b := c.IDs[i], c.IDs[i+1]; a == b || min(a, b) < 0 || max(a, b) > 7 {
				t.Errorf("%+v", c)
			}
		}
	}
	for _, g := range s.Gaps() {
		t.Logf("gap: %+v", g)
	}
}
