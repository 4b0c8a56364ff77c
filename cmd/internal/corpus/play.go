package corpus

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Command is one command line to run.
type Command struct {
	Args   []string
	Env    []string // complete environment, as NAME=VALUE
	Dir    string   // the working directory
	Stdout io.Writer
	Stderr io.Writer
}

// Patience limits one command line: no case waits for anything.
const Patience = 2 * time.Minute

// Prepare fills an empty directory with the input of a case: links to the recordings that its lines name, and
// a copy of the state directory, which it may write to.
func (c *Case) Prepare(dir, recordings string) error {
	recordings, err := filepath.Abs(recordings)
	if err != nil {
		return err
	}
	list, err := os.ReadDir(recordings)
	if err != nil {
		return err
	}
	lines := strings.Join(c.Lines, " ")
	for _, e := range list {
		switch {
		case e.Name() == stateDir:
			err = os.CopyFS(filepath.Join(dir, e.Name()), os.DirFS(filepath.Join(recordings, e.Name())))
		case strings.Contains(lines, e.Name()):
			err = os.Symlink(filepath.Join(recordings, e.Name()), filepath.Join(dir, e.Name()))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// stateDir is the directory of stored runs among the recordings.
const stateDir = "state"

// Play runs a case in a directory from [Case.Prepare], and returns everything that it printed and wrote.
func (c *Case) Play(dir string, run func(*Command) int) (string, error) {
	before, err := files(dir)
	if err != nil {
		return "", err
	}
	p := player{c: c, dir: dir, run: run, before: before}
	for _, line := range c.Lines {
		if err := p.line(line); err != nil {
			return "", fmt.Errorf("%s: %s: %w", c.Name, line, err)
		}
	}
	return normalize(p.out.String(), dir), nil
}

type player struct {
	c      *Case
	dir    string
	run    func(*Command) int
	before map[string]bool // files that existed before
	out    strings.Builder
}

func (p *player) line(line string) error {
	words := split(line)
	if last := len(words) - 1; last >= 0 && words[last] == "*" {
		return p.each(words[:last])
	}
	stdout, stderr, code, err := p.execute(words)
	if err != nil {
		return err
	}
	p.write(line, stdout, stderr, code)
	return p.appendFiles()
}

// each runs a command line for every name in the list that it prints.
func (p *player) each(words []string) error {
	list, _, _, err := p.execute(words)
	if err != nil {
		return err
	}
	for _, m := range listed.FindAllStringSubmatch(list, -1) {
		stdout, stderr, code, err := p.execute(append(words[:len(words):len(words)], m[1]))
		if err != nil {
			return err
		}
		p.write(strings.Join(words, " ")+" "+m[1], stdout, stderr, code)
	}
	return nil
}

// listed matches a line of a list and its name: the text after two blanks.
var listed = regexp.MustCompile(`(?m)^  (\S+(?: \S+)*)(?:  |$)`)

func (p *player) execute(words []string) (stdout, stderr string, code int, err error) {
	var errs bytes.Buffer
	c := &Command{Args: words, Dir: p.dir, Stderr: &errs, Env: append([]string{"TZ=UTC", "HOME=" + p.dir, "XDG_STATE_HOME=" + filepath.Join(p.dir, stateDir), "TERM=xterm", "LANG=C.UTF-8"}, p.c.Env...)}
	out, err := onTerminal(p.c.Width, func(w io.Writer) {
		c.Stdout = w
		code = p.run(c)
	})
	return out, errs.String(), code, err
}

func (p *player) write(line, stdout, stderr string, code int) {
	for _, v := range p.c.Env {
		line = v + " " + line
	}
	if code != 0 {
		line += fmt.Sprintf("  # exit code %d", code)
	}
	fmt.Fprintf(&p.out, "$ %s\n%s", line, withNewline(stdout))
	if stderr != "" {
		fmt.Fprintf(&p.out, "--- stderr\n%s", withNewline(stderr))
	}
}

// appendFiles appends the files written by a command line.
func (p *player) appendFiles() error {
	now, err := files(p.dir)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(now)) {
		if p.before[name] {
			continue
		}
		p.before[name] = true
		text, err := read(filepath.Join(p.dir, name))
		if err != nil {
			return err
		}
		fmt.Fprintf(&p.out, "--- %s\n%s", filepath.ToSlash(name), withNewline(text))
	}
	return nil
}

// read returns the text of a file, decompressed.
func read(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	var r io.Reader = f
	if strings.HasSuffix(path, ".gz") {
		if r, err = gzip.NewReader(f); err != nil {
			return "", err
		}
	}
	text, err := io.ReadAll(r)
	return string(text), err
}

// files returns the regular files below a directory.
func files(dir string) (map[string]bool, error) {
	found := map[string]bool{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			name, _ := filepath.Rel(dir, path)
			found[name] = true
		}
		return err
	})
	return found, err
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
	{regexp.MustCompile(`(?m)  +\d+\.\d+s$`), "  WALL"}, // of a bench
	{regexp.MustCompile(`"wall_s": [\d.e-]+`), `"wall_s": 0`},
}

func normalize(s, dir string) string {
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		s = strings.ReplaceAll(s, real, "DIR")
	}
	s = strings.ReplaceAll(s, dir, "DIR")
	for _, v := range varying {
		s = v.found.ReplaceAllString(s, v.by)
	}
	return s
}
