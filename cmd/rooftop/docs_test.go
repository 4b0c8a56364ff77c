package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/rooftop-dev/rooftop/cmd/internal/reference"
	"github.com/rooftop-dev/rooftop/cmd/internal/render"
)

// CodeBlock is a block of code in the documentation: ```sh is run by TestE2EDocs, ```sh not run: REASON is
// not, and everything else is not a command.
type CodeBlock struct {
	File   string
	Line   int
	Shell  bool
	NotRun string // the reason, "" for one that is run
	Text   string
}

var fence = regexp.MustCompile("^```(?:(text)|(sh)(?: not run: (.+))?)$")

// CodeBlocks returns the blocks of the documentation, and the errors in its fences.
func CodeBlocks(t *testing.T) []CodeBlock {
	t.Helper()
	var list []CodeBlock
	for _, file := range documents(t) {
		var open *CodeBlock
		for i, line := range strings.Split(readDocument(t, file), "\n") {
			switch {
			case open != nil && line == "```":
				list, open = append(list, *open), nil
			case open != nil:
				open.Text += line + "\n"
			case strings.HasPrefix(line, "```"):
				m := fence.FindStringSubmatch(line)
				if m == nil {
					t.Errorf("%s:%d: %q is not text, sh, or sh not run: REASON", file, i+1, line)
					return list
				}
				open = &CodeBlock{File: file, Line: i + 1, Shell: m[2] != "", NotRun: m[3]}
			case indentedCommand.MatchString(line):
				t.Errorf("%s:%d: a command in a block without a fence is neither run nor named as one that is not", file, i+1)
			}
		}
		if open != nil {
			t.Errorf("%s:%d: the block does not end", file, open.Line)
		}
	}
	return list
}

var indentedCommand = regexp.MustCompile(`^( {4}|\t)\s*(sudo |go |\.ci/|curl )?rooftop `)

// documents returns the paths of the documentation, from the root of the checkout.
func documents(t *testing.T) []string {
	t.Helper()
	list, _ := filepath.Glob("../../docs/*.md")
	dev, _ := filepath.Glob("../../docs/dev/*.md")
	list = append(list, dev...)
	for i, path := range list {
		list[i] = strings.TrimPrefix(filepath.ToSlash(path), "../../")
	}
	return append(list, "README.md", "CONTRIBUTING.md", "ARCHITECTURE.md", "SECURITY.md", "CHANGELOG.md")
}

func readDocument(t *testing.T, file string) string {
	t.Helper()
	text := readFile(t, filepath.Join("..", "..", filepath.FromSlash(file)))
	return string(text)
}

// Every block says whether it is run, the test that replaces it exists, and its commands are valid usage.
func TestCodeBlocksOfTheDocs(t *testing.T) {
	var tests bytes.Buffer
	files, err := filepath.Glob("*_test.go")
	must(t, err)
	for _, file := range files {
		text := readFile(t, file)
		tests.Write(text)
	}
	run, not := 0, 0
	for _, b := range CodeBlocks(t) {
		if !b.Shell {
			continue
		}
		if b.NotRun == "" {
			run++
		} else {
			not++
		}
		for _, name := range regexp.MustCompile(`Test\w+`).FindAllString(b.NotRun, -1) {
			if !bytes.Contains(tests.Bytes(), []byte("func "+name)) {
				t.Errorf("%s:%d: there is no %s", b.File, b.Line, name)
			}
		}
		text := regexp.MustCompile(`(?m)\s*&$`).ReplaceAllString(strings.ReplaceAll(b.Text, "\\\n", " "), "")
		for line := range strings.Lines(text) {
			line, _, _ = strings.Cut(line, " #")
			for _, words := range commandsOf(line) {
				if words[0] == "sudo" {
					words = words[1:]
				}
				if len(words) > 0 && words[0] == "rooftop" {
					exampleIsTaken(t, withDefaultCommand(words[1:]))
				}
			}
		}
	}
	t.Logf("%d blocks of commands are run by TestE2EDocs, %d are not and say why", run, not)
	if run < 4 {
		t.Errorf("only %d blocks are run", run)
	}
}

var (
	codeFences   = regexp.MustCompile("(?ms)^```.*?^```$")
	codeSpans    = regexp.MustCompile("`[^`\n]*`")
	markdownLink = regexp.MustCompile(`\]\(([^)\s]+)\)`)
)

// Links within the checkout lead to a file, and to a heading in it. Others would need a network.
func TestLinksOfTheDocs(t *testing.T) {
	inside, outside := 0, 0
	for _, file := range documents(t) {
		text := codeSpans.ReplaceAllString(codeFences.ReplaceAllString(readDocument(t, file), ""), "")
		for _, m := range markdownLink.FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], "://") {
				outside++
				continue
			}
			inside++
			path, anchor, _ := strings.Cut(m[1], "#")
			to := file
			if path != "" {
				to = filepath.ToSlash(filepath.Join(filepath.Dir(file), path))
			}
			if _, err := os.Stat(filepath.Join("..", "..", to)); err != nil {
				t.Errorf("%s: %s leads nowhere: %v", file, m[1], err)
			} else if anchor != "" && !slices.Contains(anchors(readDocument(t, to)), anchor) {
				t.Errorf("%s: %s: %s has no such heading, only %q", file, m[1], to, anchors(readDocument(t, to)))
			}
		}
	}
	t.Logf("%d links within the checkout; NOT CHECKED: %d links to elsewhere, which need a network", inside, outside)
	if inside < 20 {
		t.Errorf("only %d links were found", inside)
	}
}

// anchors returns the names of headings as GitHub makes them.
func anchors(text string) []string {
	var list []string
	for line := range strings.Lines(codeFences.ReplaceAllString(text, "")) {
		if title := strings.TrimLeft(line, "#"); title != line {
			list = append(list, strings.Map(func(r rune) rune {
				switch {
				case r == ' ':
					return '-'
				case r == '-', r == '_', unicode.IsLetter(r), unicode.IsDigit(r):
					return unicode.ToLower(r)
				}
				return -1
			}, strings.TrimSpace(title)))
		}
	}
	return list
}

// Each page of docs/ is a topic that is printed whole within the width.
func TestHelpShowsEveryPage(t *testing.T) {
	for _, topic := range topics() {
		out, errs, code := call(t, nil, "help", topic.name)
		if code != 0 || !strings.HasPrefix(out, topic.title) {
			t.Errorf("help %s: exit code %d: %s%.80s", topic.name, code, errs, out)
		}
	}
	spaces := regexp.MustCompile(`\s+`)
	for _, file := range documents(t) {
		text := readDocument(t, file)
		for _, width := range []int{60, 80, 120} {
			var b strings.Builder
			must(t, render.Text(&b, reference.Manual(text), render.Options{Width: width}))
			printed := spaces.ReplaceAllString(b.String(), "")
			for _, sentence := range regexp.MustCompile(`(?m)^[A-Z][A-Za-z ,]{20,}`).FindAllString(codeFences.ReplaceAllString(text, ""), -1) {
				if !strings.Contains(printed, spaces.ReplaceAllString(sentence, "")) {
					t.Errorf("%s at %d: %q is not printed", file, width, sentence)
				}
			}
			if strings.Contains(b.String(), "**") {
				t.Errorf("%s at %d: marks are printed", file, width)
			}
		}
	}
}

// TestManPages checks that pages have the sections of the help, and its tables line by line.
func TestManPages(t *testing.T) {
	dir := t.TempDir()
	if _, errs, code := call(t, nil, "man", dir); code != 0 {
		t.Fatal(errs)
	}
	everyCommand(t, func(t *testing.T, c *cobra.Command) {
		if c.HasParent() && !c.IsAvailableCommand() {
			return
		}
		text := readFile(t, filepath.Join(dir, manName(c)+".1"))
		if !bytes.HasPrefix(text, []byte(".TH \""+strings.ToUpper(manName(c)))) || !bytes.Contains(text, []byte(".SH SEE ALSO")) {
			t.Errorf("%.200s", text)
		}
	})
	demo := readFile(t, filepath.Join(dir, "rooftop-demo.1"))
	for _, want := range []string{"\n.SH EXIT CODES\n.nf\n  0      nothing is left to recommend\n", "\n.SH THE DEMONSTRATION\n", "\n.SH EXAMPLES\n"} {
		if !bytes.Contains(demo, []byte(want)) {
			t.Errorf("rooftop-demo.1 lacks %q:\n%.3000s", want, demo)
		}
	}
}
