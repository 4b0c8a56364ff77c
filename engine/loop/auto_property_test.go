package loop_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine/longtest"
	"github.com/rooftop-dev/rooftop/engine/loop"
)

// clumsy is a rig whose applier, server, load and people act at random.
type clumsy struct {
	*rig
	chance *rand.Rand
	lives  []string      // arguments of each start, oldest first
	heard  int           // number of events checked so far
	byHand time.Duration // time of the last restart by hand
}

func newClumsy(t *testing.T, seed int) *clumsy {
	chance := rand.New(rand.NewPCG(uint64(seed), 11))
	c := &clumsy{chance: chance}
	c.rig = newRig(t, fmt.Sprintf("--max-num-seqs %d", 2<<chance.IntN(5)), auto, func(p *loop.Plan) {
		p.Limits.Restarts = 2 + chance.IntN(5)
		p.Longest = time.Duration(20+chance.IntN(100)) * time.Second
		if seed%6 == 1 { // a tight limit
			p.Limits.Downtime = time.Duration(8+seed%40) * time.Second
		}
		p.Canary = seed%5 == 4
		p.Countdown = time.Duration(chance.IntN(2)*5) * time.Second
		if chance.IntN(2) == 0 {
			quiet(p)
		}
	})
	c.group.becomes = func(f *fake) {
		f.limit, f.frozen, f.dead = c.server.limit, chance.IntN(8) == 0, chance.IntN(8) == 0
		f.clients = []float64{f.clients, f.clients, f.clients / 2, 0}[chance.IntN(4)]
		c.group.fails, c.group.itself = []string{"", "", "no room"}[chance.IntN(3)], chance.IntN(2) == 0 // of the next one
	}
	c.server.limit = []float64{0, 0, 150, 400}[chance.IntN(4)]
	c.refuses = func(string) string {
		if chance.IntN(4) == 0 {
			return "the server did not start: out of memory"
		}
		return ""
	}
	c.rig.lives = func(args string) {
		c.server.frozen = args != c.kept && chance.IntN(6) == 0
		if chance.IntN(4) == 0 && args != c.kept {
			c.doomed, c.doom = c.now+time.Duration(chance.IntN(90))*time.Second, func() {
				if chance.IntN(2) == 0 {
					c.server.down = true
					return
				}
				c.start(time.Duration(chance.IntN(10)) * time.Second)
			}
		}
	}
	return c
}

// meddle performs a random act that is not the applier's.
func (c *clumsy) meddle() {
	switch n := c.chance.IntN(1500); {
	case n == 0 && !c.loop.Snapshot().Paused && c.now < 35*time.Minute: // nothing is read while paused
		c.byHand = c.now
		c.restart(fmt.Sprintf("--max-num-seqs %d", 2<<c.chance.IntN(6)), time.Duration(c.chance.IntN(10))*time.Second)
	case n == 1:
		c.server.clients = float64(int(8) << c.chance.IntN(4))
	case n == 2:
		c.step(loop.Pressed{Command: loop.CommandHold})
	case n < 5:
		c.step(loop.Pressed{Command: loop.Command(c.chance.IntN(int(loop.NumCommands)))})
	case n == 5 && c.chance.IntN(4) == 0:
		c.fails = "the hook ended with 1"
	case n == 6:
		c.fails = ""
	}
}

// look checks the events since the last call.
func (c *clumsy) look() {
	c.t.Helper()
	if n := len(c.lives); n == 0 || c.lives[n-1] != fmt.Sprint(c.server.pid, c.server.args) {
		c.lives = append(c.lives, fmt.Sprint(c.server.pid, c.server.args))
	}
	for ; c.heard < len(c.events); c.heard++ {
		e := c.events[c.heard]
		if e.Kind != loop.EventSpread {
			continue
		}
		now := c.server.args
		same := func(life string) bool { return strings.HasSuffix(life, now) }
		if !slices.ContainsFunc(c.lives[:len(c.lives)-1], same) {
			c.fatalf("noise of %q, which never ran before: %q", now, c.lives)
		}
		if math.Abs(e.Log.V) > 0.2 {
			c.fatalf("noise of %v: no restart changes that much here", e.Log.V)
		}
	}
}

// TestAutoWhateverHappens has appliers that fail, servers that die, hang, and come back, loads that
// change, and people who press keys. It checks that the restarts stay within their limit, that the
// run ends with the kept configuration or reports otherwise, and that noise is only measured
// between equal settings.
func TestAutoWhateverHappens(t *testing.T) {
	runs := 150
	if !longtest.Tests {
		runs = 25
	}
	ends := map[string]int{}
	for seed := range runs {
		c := newClumsy(t, seed)
		most := c.loop.Snapshot().Limits.Restarts
		c.step(loop.Begin{})
		leave := time.Duration(c.chance.IntN(1200)) * time.Second
		if c.chance.IntN(2) == 0 {
			leave = 40 * time.Minute
		}
		for c.done == nil && c.now < 90*time.Minute {
			c.run(250 * time.Millisecond)
			c.look()
			if c.now < leave {
				c.meddle()
				continue
			}
			if s := c.loop.Snapshot(); s.Held || s.Paused {
				c.server.down = false
			}
			c.fails = ""
			c.step(loop.Pressed{Command: loop.CommandQuit})
			for c.done == nil && c.now < leave+2*time.Minute {
				c.run(250 * time.Millisecond)
			}
			break
		}
		if c.done == nil {
			c.fatalf("seed %d: not ended after %v; phase %d, %q", seed, c.now, c.loop.Snapshot().Phase, c.loop.Snapshot().Progress.Text)
		}
		if c.starts > most {
			c.fatalf("seed %d: %d restarts, allowed are %d", seed, c.starts, most)
		}
		said := c.done.ExitCode == 1 || c.done.ExitCode == 5 || c.byHand > 0 && c.now-c.byHand < 30*time.Second
		if c.server.args != c.kept && !said {
			c.fatalf("seed %d: %q runs, %q is kept; exit %d: %s", seed, c.server.args, c.kept, c.done.ExitCode, c.done.Reason)
		}
		if strings.TrimSpace(c.done.Reason) == "" {
			t.Errorf("seed %d: no reason", seed)
		}
		if testing.Verbose() {
			t.Logf("seed %d: exit %d after %v, %d starts, %d changes: %s", seed, c.done.ExitCode, c.now, c.starts, len(c.loop.Snapshot().Iterations), c.done.Reason)
		}
		ends[fmt.Sprint(c.done.ExitCode)]++
	}
	t.Logf("exit codes %v", ends)
	if len(ends) < 3 {
		t.Errorf("the inputs lead to few ends: %v", ends)
	}
}
