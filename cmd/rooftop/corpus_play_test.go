package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
	"golang.org/x/term"
)

// patience limits one command line: no case waits for anything.
const patience = 2 * time.Minute

// stateDir is the directory of stored runs among the recordings.
const stateDir = "state"

// player runs the command lines of a case in a directory, and collects everything that they print and write.
type player struct {
	t       *testing.T
	dir     string
	oneLine bool            // a usage error has to be one line
	before  map[string]bool // files that existed before
	out     strings.Builder
}

// prepare fills the directory with links to the recordings that a case names, and a copy of the state directory, which
// it may write to.
func (p *player) prepare(c *corpusCase, recordings string) {
	list, err := os.ReadDir(recordings)
	must(p.t, err)
	lines := strings.Join(c.lines, " ")
	for _, e := range list {
		switch {
		case e.Name() == stateDir:
			err = os.CopyFS(filepath.Join(p.dir, e.Name()), os.DirFS(filepath.Join(recordings, e.Name())))
		case strings.Contains(lines, e.Name()):
			err = os.Symlink(filepath.Join(recordings, e.Name()), filepath.Join(p.dir, e.Name()))
		}
		must(p.t, err)
	}
	p.before = p.files()
}

// play runs a line, or with a * at its end one for every name in the list that it prints.
func (p *player) play(line string) {
	words := split(line)
	if last := len(words) - 1; words[last] == "*" {
		list, _, _ := p.execute(words[:last])
		for _, m := range listed.FindAllStringSubmatch(list, -1) {
			p.write(append(words[:last:last], m[1]), strings.TrimSuffix(line, "*")+m[1])
		}
		return
	}
	p.write(words, line)
	p.appendFiles()
}

// listed matches a line of a list and its name: the text after two blanks.
var listed = regexp.MustCompile(`(?m)^  (\S+(?: \S+)*)(?:  |$)`)

func (p *player) write(words []string, line string) {
	stdout, stderr, code := p.execute(words)
	if p.oneLine && code == cli.ExitUsage && strings.Count(stderr, "\n") != 1 {
		p.t.Errorf("%s: not one line: %s", line, stderr)
	}
	if code != 0 {
		line += fmt.Sprintf("  # exit code %d", code)
	}
	fmt.Fprintf(&p.out, "$ %s\n%s", line, withNewline(stdout))
	if stderr != "" {
		fmt.Fprintf(&p.out, "--- stderr\n%s", withNewline(stderr))
	}
}

// execute runs a command line in this process, with the environment variables that it begins with.
func (p *player) execute(words []string) (stdout, stderr string, code cli.ExitCode) {
	p.t.Helper()
	env := map[string]string{"TZ": "UTC", "HOME": p.dir, "XDG_STATE_HOME": filepath.Join(p.dir, stateDir), "TERM": "xterm", "LANG": "C.UTF-8"}
	for len(words) > 0 {
		name, value, ok := strings.Cut(words[0], "=")
		if !ok || strings.ToUpper(name) != name {
			break
		}
		env[name], words = value, words[1:]
	}
	width, _ := strconv.Atoi(env["COLUMNS"])
	delete(env, "COLUMNS")
	ctx, stop := context.WithTimeout(p.t.Context(), patience)
	defer stop()
	var errs bytes.Buffer
	stdout = p.onTerminal(width, func(w io.Writer) {
		code = execute(ctx, cli.World{Args: words, Stdout: w, Stderr: &errs, Env: func(name string) (string, bool) {
			value, ok := env[name]
			return value, ok
		}})
	})
	if ctx.Err() != nil {
		p.t.Errorf("rooftop %s does not end", strings.Join(words, " "))
	}
	return stdout, errs.String(), code
}

// appendFiles appends the files written by a command line.
func (p *player) appendFiles() {
	now := p.files()
	for _, name := range slices.Sorted(maps.Keys(now)) {
		if p.before[name] {
			continue
		}
		p.before[name] = true
		text := readFile(p.t, filepath.Join(p.dir, name))
		fmt.Fprintf(&p.out, "--- %s\n%s", filepath.ToSlash(name), withNewline(string(text)))
	}
}

// files returns the regular files in the directory.
func (p *player) files() map[string]bool {
	found := map[string]bool{}
	err := filepath.WalkDir(p.dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			name, _ := filepath.Rel(p.dir, path)
			found[name] = true
		}
		return err
	})
	must(p.t, err)
	return found
}

// withNewline returns a text that ends in a newline.
func withNewline(s string) string {
	if s == "" || strings.HasSuffix(s, "\n") {
		return s
	}
	return s + "\n"
}

// split splits a command line into words.
func split(line string) (words []string) {
	for i, part := range strings.Split(line, `"`) {
		if i%2 == 1 {
			words = append(words, part)
		} else {
			words = append(words, strings.Fields(part)...)
		}
	}
	return words
}

// varying matches output that differs between runs of one build, with its replacement.
var varying = []struct {
	found *regexp.Regexp
	by    string
}{
	{regexp.MustCompile(`(rooftop |"version": ")(devel|\d+\.\d+\.\d+-\d)[^",\s]*`), "${1}VERSION"},
	{regexp.MustCompile(`(?m)^( +(?:commit|built|NVML|eBPF) ).*$`), "${1}BUILD"},
	{regexp.MustCompile(`"(commit|date|modified|go|platform|nvml|ebpf)": ("[^"]*"|true|false|null)`), `"$1": BUILD`},
}

// normalized returns the collected output without the parts that differ between runs.
func (p *player) normalized() string {
	s := p.out.String()
	if real, err := filepath.EvalSymlinks(p.dir); err == nil {
		s = strings.ReplaceAll(s, real, "DIR")
	}
	s = strings.ReplaceAll(s, p.dir, "DIR")
	for _, v := range varying {
		s = v.found.ReplaceAllString(s, v.by)
	}
	return s
}

// onTerminal calls do with a terminal of the given width that does not translate its output, and returns the output. A
// width of 0 means no terminal.
func (p *player) onTerminal(width int, do func(io.Writer)) string {
	p.t.Helper()
	var printed bytes.Buffer
	if width == 0 {
		do(&printed)
		return printed.String()
	}
	control, screen, err := OpenTerminal(width, 60)
	if err == nil {
		_, err = term.MakeRaw(int(screen.Fd()))
	}
	if err != nil {
		p.t.Skipf("NOT CHECKED: pages on a terminal: %v", err)
	}
	defer control.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(&printed, control) // ends with EIO when the other side is closed
	}()
	do(screen)
	_ = screen.Close()
	<-done
	return printed.String()
}
