package systemd

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/dbus"
	godbus "github.com/godbus/dbus/v5"

	"github.com/rooftop-dev/rooftop/engine/launch"
)

// Limits of answers of systemd, which may be stopped. Tests change them.
var (
	answerWithin = 25 * time.Second // as systemctl waits
	reloadWithin = 90 * time.Second // as systemctl waits for a reload of all units
)

// limited limits a call of systemd.
func limited(ctx context.Context, within time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, within, errSilent)
}

// errSilent is the cause of a call that systemd did not answer in time.
var errSilent = errors.New("it did not answer in time")

// connect connects to the manager of the unit; a machine need not run a message bus for that.
func (u *Unit) connect(ctx context.Context) (*dbus.Conn, error) {
	if u.conn != nil && u.conn.Connected() {
		return u.conn, nil
	}
	// The connection outlives the call, whose end closes it until systemd has answered.
	asked, cancel := limited(ctx, answerWithin)
	defer cancel()
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	answered := context.AfterFunc(asked, end)
	var err error
	if u.unit.UID < 0 {
		u.conn, err = dbus.NewWithContext(life)
	} else if u.conn, err = dbus.NewConnection(func() (*godbus.Conn, error) { return privateUserBus(life) }); err != nil && asked.Err() == nil {
		u.conn, err = dbus.NewUserConnectionContext(life)
	}
	if !answered() {
		err = context.Cause(asked)
	}
	if err != nil {
		end()
		u.conn = nil
		return nil, fmt.Errorf("systemd does not answer: %w", err)
	}
	return u.conn, nil
}

// reload has systemd read its files.
func (u *Unit) reload(ctx context.Context, conn *dbus.Conn) error {
	ctx, cancel := limited(ctx, reloadWithin)
	defer cancel()
	err := conn.ReloadContext(ctx)
	if ctx.Err() != nil {
		err = fmt.Errorf("reload systemd: %w", context.Cause(ctx))
	}
	return err
}

// privateUserBus connects to the service manager of this user without a message bus, until ctx ends.
func privateUserBus(ctx context.Context) (*godbus.Conn, error) {
	conn, err := godbus.Dial("unix:path="+os.Getenv("XDG_RUNTIME_DIR")+"/systemd/private", godbus.WithContext(ctx))
	if err != nil {
		return nil, err
	}
	if err := conn.Auth([]godbus.Auth{godbus.AuthExternal(strconv.Itoa(os.Getuid()))}); err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

// execStart is the command of a unit.
type execStart struct {
	argv   []string // as systemd read it: specifiers are expanded, variables are not
	prefix string
}

// expanded returns the command line that the unit starts, false if it has variables.
func (e execStart) expanded() ([]string, bool) {
	argv := slices.Clone(e.argv)
	if strings.Contains(e.prefix, ":") {
		return argv, true
	}
	for i, word := range argv {
		if strings.Contains(strings.ReplaceAll(word, "$$", ""), "$") {
			return nil, false
		}
		argv[i] = strings.ReplaceAll(word, "$$", "$")
	}
	return argv, true
}

// prefixes are the prefixes of a command in systemd.service(5) by their names on the bus.
var prefixes = []struct{ name, prefix string }{
	{"ignore-failure", "-"}, {"no-env-expand", ":"}, {"privileged", "+"}, {"no-setuid", "!"}, {"ambient", "!!"},
}

// execStart reads the only command of the unit.
func (u *Unit) execStart(ctx context.Context, conn *dbus.Conn) (execStart, error) {
	ctx, cancel := limited(ctx, answerWithin)
	defer cancel()
	property, err := conn.GetServicePropertyContext(ctx, u.Name(), "ExecStartEx")
	if err != nil {
		return execStart{}, fmt.Errorf("systemd does not say what %s starts: %w", u.Name(), err)
	}
	var commands []struct {
		Path  string
		Argv  []string
		Flags []string
		// When it began and ended, on two clocks, and how.
		Began, BeganMonotonic, Ended, EndedMonotonic uint64
		PID                                          uint32
		Code, Status                                 int32
	}
	if err := property.Value.Store(&commands); err != nil {
		return execStart{}, fmt.Errorf("what %s starts cannot be read: %w", u.Name(), err)
	}
	if len(commands) != 1 {
		return execStart{}, fmt.Errorf("%s has %d commands in ExecStart=, and rooftop changes units with one", u.Name(), len(commands))
	}
	one := commands[0]
	if len(one.Argv) == 0 || one.Path != one.Argv[0] {
		return execStart{}, fmt.Errorf("%s starts %s under another name (@ in ExecStart=), which rooftop does not change", u.Name(), one.Path)
	}
	start := execStart{argv: one.Argv}
	for _, p := range prefixes {
		if slices.Contains(one.Flags, p.name) {
			start.prefix += p.prefix
		}
	}
	return start, nil
}

// state is how a unit is, in the words of systemd.
type state struct {
	active, sub, result string
	invocation          string
	status              int32 // exit status of the main process, or the signal that ended it
}

// runs reports whether the unit runs or is on its way to it, and does not wait for another try.
func (s state) runs() bool {
	return s.active == "active" || s.active == "reloading" || s.active == "activating" && s.sub != "auto-restart"
}

// state reads how the unit is.
func (u *Unit) state(ctx context.Context, conn *dbus.Conn) (state, error) {
	ctx, cancel := limited(ctx, answerWithin)
	defer cancel()
	unit, err := conn.GetAllPropertiesContext(ctx, u.Name())
	if err != nil {
		return state{}, fmt.Errorf("systemd does not describe %s: %w", u.Name(), err)
	}
	text := func(name string) string { s, _ := unit[name].(string); return s }
	s := state{active: text("ActiveState"), sub: text("SubState"), result: text("Result")}
	if id, ok := unit["InvocationID"].([]byte); ok {
		s.invocation = hex.EncodeToString(id)
	}
	s.status, _ = unit["ExecMainStatus"].(int32)
	return s, nil
}

// failure returns why the server that was started has ended, in the words of its log if the journal has
// any.
func (u *Unit) failure(ctx context.Context, now state) error {
	how := fmt.Sprintf("%s: %s", now.active, now.result)
	switch now.result {
	case "exit-code":
		how = fmt.Sprintf("it ended with exit status %d", now.status)
	case "signal", "core-dump":
		how = fmt.Sprintf("it was ended by signal %d", now.status)
	case "oom-kill":
		how = "it was killed because memory ran out"
	case "timeout":
		how = "it took longer than its unit allows"
	case "success":
		how = "it ended"
	}
	if said := launch.FailureReason(u.log(ctx)); said != "" {
		how = said + " (" + how + ")"
	}
	return fmt.Errorf("%s: %s", u.Name(), how)
}

// logLines is the number of lines read from the end of a unit's log.
const logLines = "400"

// log returns the end of what the server that Make started wrote to the journal; nil if there is none.
func (u *Unit) log(ctx context.Context) []byte {
	if u.invocation == "" {
		return nil
	}
	args := []string{"--output=cat", "--no-pager", "--lines=" + logLines, "_SYSTEMD_INVOCATION_ID=" + u.invocation}
	if u.unit.UID >= 0 {
		args = append([]string{"--user"}, args...)
	}
	ctx, cancel := limited(ctx, answerWithin)
	defer cancel()
	cmd := exec.CommandContext(ctx, "journalctl", args...)
	cmd.WaitDelay = time.Second
	text, err := cmd.Output()
	if err != nil {
		return nil
	}
	return text
}
