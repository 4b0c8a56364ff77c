package systemd

import (
	"bufio"
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/apply/manager"
	"github.com/rooftop-dev/rooftop/engine"
)

// silent starts a service manager of this user that is stopped: it accepts connections and says nothing, or nothing
// after it has let the user in.
func silent(t *testing.T, greets bool) *Unit {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("XDG_RUNTIME_DIR", dir)
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path="+filepath.Join(dir, "bus"))
	if err := os.Mkdir(filepath.Join(dir, "systemd"), 0o700); err != nil {
		t.Fatal(err)
	}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "unix", filepath.Join(dir, "systemd", "private"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { c.Close() })
			if greets {
				go greet(c)
			}
		}
	}()
	u := unitOf(t, "", "/opt/vllm", "serve", "m", "--max-num-seqs", "4")
	u.unit.UID = os.Getuid()
	t.Cleanup(u.Close)
	return u
}

// greet answers as the D-Bus specification's authentication protocol has it, and no message.
func greet(c net.Conn) {
	for lines := bufio.NewScanner(c); lines.Scan(); {
		answer := "OK 1234deadbeef"
		switch line := strings.TrimLeft(lines.Text(), "\x00"); {
		case strings.HasPrefix(line, "NEGOTIATE_UNIX_FD"):
			answer = "AGREE_UNIX_FD"
		case strings.HasPrefix(line, "BEGIN"):
			continue
		case line == "AUTH":
			answer = "REJECTED EXTERNAL"
		}
		_, _ = c.Write([]byte(answer + "\r\n"))
	}
}

// A systemd that does not answer ends neither a change nor a revert without a word.
func TestSystemdIsSilent(t *testing.T) {
	change := &manager.Change{All: []engine.Change{{Flag: "--max-num-seqs", From: "4", To: "8"}}}
	for name, greets := range map[string]bool{"stopped": false, "stopped after a greeting": true} {
		t.Run(name, func(t *testing.T) {
			usual, reload := answerWithin, reloadWithin
			t.Cleanup(func() { answerWithin, reloadWithin = usual, reload })
			u := silent(t, greets)
			for _, c := range []*manager.Change{change, {Revert: true}} {
				answerWithin, reloadWithin = 100*time.Millisecond, 100*time.Millisecond
				if err := u.Make(t.Context(), c); !errors.Is(err, errSilent) {
					t.Errorf("change %v: %v", c.All, err)
				}
				answerWithin, reloadWithin = time.Hour, 100*time.Millisecond
				ctx, cancel := context.WithCancelCause(t.Context())
				why := errors.New("the run was ended")
				cancel(why)
				u.Close()
				if err := u.Make(ctx, c); !errors.Is(err, why) {
					t.Errorf("canceled change %v: %v", c.All, err)
				}
			}
			answerWithin = 100 * time.Millisecond
			u.Close()
			u.invocation = "0123"
			if err := u.Ended(context.Background()); err != nil {
				t.Errorf("a systemd that does not answer says nothing of the server: %v", err)
			}
			if err := u.learn(context.Background(), u.kept, 1); err == nil {
				t.Error("a unit that nobody describes is learned")
			}
		})
	}
}
