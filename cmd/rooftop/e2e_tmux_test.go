//go:build e2e && linux

package main_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// tmuxPatience limits operations that are fast on any machine: those of tmux and its shell.
const tmuxPatience = 20 * time.Second

// Terminal is a shell in a pane of its own tmux server: tests can type, read the screen, resize and close the pane.
// Its methods fail the test if tmux fails.
type Terminal struct {
	// Dir is where the shell was started, Home its home directory.
	Dir, Home string

	t      testing.TB
	socket string
	server *exec.Cmd
	ended  func() // waits until the server has ended
}

// openTmux starts a tmux server with one pane and a shell in it, and ends it with the test. env is added to HOME, PATH,
// LANG and SHELL. Without tmux the test fails rather than being skipped.
func openTmux(t testing.TB, width, height int, env ...string) *Terminal {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Fatal("NOT CHECKED: the screen in a terminal, because tmux is not installed; install it, or leave these tests out with -skip E2EScreen")
	}
	// The name of a socket may have at most 107 bytes, and the path of the test's own directory may
	// be longer.
	run, err := os.MkdirTemp("", "tmux")
	must(t, err)
	x := &Terminal{Dir: filepath.Join(run, "dir"), Home: filepath.Join(run, "home"), t: t, socket: filepath.Join(run, "s")}
	for _, dir := range []string{x.Home, x.Dir} {
		must(t, os.MkdirAll(dir, 0o700))
	}
	// Run in the foreground, as our child process, so that it cannot outlive the test.
	x.server = exec.CommandContext(context.WithoutCancel(t.Context()), "tmux", "-D", "-S", x.socket, "-f", "/dev/null")
	x.server.Env = append([]string{"HOME=" + x.Home, "PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8", "SHELL=/bin/bash"}, env...)
	must(t, x.server.Start())
	x.ended = sync.OnceFunc(func() { _ = x.server.Wait() })
	t.Cleanup(func() {
		x.Close()
		// Programs that were hung up may still be writing.
		x.poll(tmuxPatience, func() bool { return os.RemoveAll(run) == nil })
	})
	x.until("a tmux server", tmuxPatience, func() bool {
		_, err := os.Stat(x.socket)
		return err == nil
	})
	x.tmux("set-option", "-g", "default-terminal", "tmux-256color", ";", "set-option", "-s", "set-clipboard", "on", ";", "set-option", "-g", "status", "off",
		";", "set-option", "-g", "remain-on-exit", "on", ";", "set-option", "-g", "history-limit", "5000")
	x.tmux("new-session", "-d", "-s", "s", "-c", x.Dir, "-x", strconv.Itoa(width), "-y", strconv.Itoa(height), "exec env PS1='$ ' bash --norc --noprofile")
	x.Await("$", tmuxPatience)
	return x
}

// Close ends the tmux server, as if the terminal's machine had failed: programs in the pane get a
// hang-up. It may be called again.
func (x *Terminal) Close() {
	_ = x.command("kill-server").Run()
	force := time.AfterFunc(tmuxPatience, func() { _ = x.server.Process.Kill() })
	defer force.Stop()
	x.ended()
}

// Type types text followed by enter.
func (x *Terminal) Type(text string) {
	x.t.Helper()
	x.tmux("send-keys", "-t", "s", "-l", "--", text)
	x.Press("Enter")
}

// Press presses keys by their tmux names: "q", "Tab", "C-z", "Enter".
func (x *Terminal) Press(keys ...string) {
	x.t.Helper()
	x.tmux(append([]string{"send-keys", "-t", "s"}, keys...)...)
}

// Screen returns the visible text, without trailing blanks of lines.
func (x *Terminal) Screen() string {
	x.t.Helper()
	return x.tmux("capture-pane", "-p", "-t", "s")
}

// Styled returns the screen with the escape sequences of its colours.
func (x *Terminal) Styled() string {
	x.t.Helper()
	return x.tmux("capture-pane", "-p", "-e", "-t", "s")
}

// History returns the whole normal screen including the scrollback, with wrapped lines joined.
func (x *Terminal) History() string {
	x.t.Helper()
	return x.tmux("capture-pane", "-p", "-J", "-S", "-", "-t", "s")
}

// Resize changes the size of the terminal.
func (x *Terminal) Resize(width, height int) {
	x.t.Helper()
	x.tmux("resize-window", "-t", "s", "-x", strconv.Itoa(width), "-y", strconv.Itoa(height))
}

// Alternate reports whether the alternate screen is shown, which does not affect the lines of the
// shell.
func (x *Terminal) Alternate() bool {
	x.t.Helper()
	return x.ask("alternate_on") == "1"
}

// Cursor reports whether the cursor is visible.
func (x *Terminal) Cursor() bool {
	x.t.Helper()
	return x.ask("cursor_flag") == "1"
}

// Mouse reports whether a program captures the mouse, so that text cannot be selected.
func (x *Terminal) Mouse() bool {
	x.t.Helper()
	return x.ask("mouse_any_flag") == "1"
}

// Clipboard returns what programs copied last, "" if nothing.
func (x *Terminal) Clipboard() string {
	x.t.Helper()
	out, _ := x.command("show-buffer").Output() // fails without a buffer
	return string(out)
}

// ShellPID returns the PID of the shell.
func (x *Terminal) ShellPID() string {
	x.t.Helper()
	return x.ask("pane_pid")
}

// Pipe copies all further terminal output of programs to a file.
func (x *Terminal) Pipe(file string) {
	x.t.Helper()
	x.tmux("pipe-pane", "-t", "s", "exec cat > '"+file+"'")
	x.until("the pipe's file", tmuxPatience, func() bool {
		_, err := os.Stat(file)
		return err == nil
	})
}

// Await waits until the screen contains a text and returns that screen.
func (x *Terminal) Await(text string, within time.Duration) string {
	x.t.Helper()
	return x.AwaitThat(fmt.Sprintf("%q", text), within, func(screen string) bool { return strings.Contains(screen, text) })
}

// AwaitThat waits until wanted accepts the screen, and returns it. On a timeout it fails the test
// with the last screen.
func (x *Terminal) AwaitThat(what string, within time.Duration, wanted func(screen string) bool) string {
	x.t.Helper()
	var last string
	if !x.poll(within, func() bool {
		last = x.Screen()
		return wanted(last)
	}) {
		x.t.Fatalf("no %s within %v; the screen was:\n%s", what, within, boxedText(last))
	}
	return last
}

// AwaitNormal waits until the normal screen is shown, which programs restore at their end.
func (x *Terminal) AwaitNormal(within time.Duration) {
	x.t.Helper()
	if !x.poll(within, func() bool { return !x.Alternate() }) {
		x.t.Fatalf("the alternate screen is still shown after %v:\n%s", within, boxedText(x.Screen()))
	}
}

func (x *Terminal) until(what string, within time.Duration, done func() bool) {
	x.t.Helper()
	if !x.poll(within, done) {
		x.t.Fatalf("no %s within %v", what, within)
	}
}

// poll calls done every 50 ms, and once more at the end.
func (x *Terminal) poll(within time.Duration, done func() bool) bool {
	for deadline := time.Now().Add(within); ; time.Sleep(50 * time.Millisecond) {
		if done() {
			return true
		}
		if time.Now().After(deadline) {
			return false
		}
	}
}

func (x *Terminal) ask(variable string) string {
	x.t.Helper()
	return strings.TrimSpace(x.tmux("display-message", "-p", "-t", "s", "#{"+variable+"}"))
}

// tmux runs a tmux command and returns its output.
func (x *Terminal) tmux(args ...string) string {
	x.t.Helper()
	cmd := x.command(args...)
	var problem strings.Builder
	cmd.Stderr = &problem
	out, err := cmd.Output()
	if err != nil {
		x.t.Fatalf("tmux %s: %v: %s", strings.Join(args, " "), err, problem.String())
	}
	return string(out)
}

func (x *Terminal) command(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(context.WithoutCancel(x.t.Context()), "tmux", append([]string{"-u", "-S", x.socket}, args...)...)
	cmd.Env = x.server.Env
	return cmd
}

// boxedText draws a box around a screen, so that a log shows its edges.
func boxedText(screen string) string {
	var b strings.Builder
	for line := range strings.Lines(screen) {
		b.WriteString("    | " + strings.TrimRight(line, "\n") + "\n")
	}
	return b.String()
}
