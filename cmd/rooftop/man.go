package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
)

// newMan returns the command that writes the man pages, for packagers.
func newMan() *cobra.Command {
	return newCommand("man", exactly(1, "one DIR", "the pages are written into it"), func(c *cobra.Command, args []string) error {
		if err := os.MkdirAll(args[0], 0o755); err != nil {
			return err
		}
		return writeManPages(c.Root(), args[0])
	})
}

// writeManPages writes the pages of a command and of those below it.
func writeManPages(c *cobra.Command, dir string) error {
	if err := os.WriteFile(filepath.Join(dir, manName(c)+".1"), manPage(c), 0o644); err != nil {
		return err
	}
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			if err := writeManPages(sub, dir); err != nil {
				return err
			}
		}
	}
	return nil
}

func manName(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

// manPage returns the help of a command as a man page: the same words, with its headings as sections. Lines
// that the help indents, such as tables, flags and examples, stay as they are. cobra's own pages join them.
func manPage(c *cobra.Command) []byte {
	var help, b bytes.Buffer
	was := c.OutOrStdout()
	c.SetOut(&help)
	_ = c.Help() // a buffer takes all
	c.SetOut(was)
	date, _, _ := strings.Cut(cli.ThisBuild().Date, "T")
	fmt.Fprintf(&b, ".TH \"%s\" 1 \"%s\" \"rooftop %s\" \"User Commands\"\n.SH NAME\n%s \\- %s\n.SH DESCRIPTION\n",
		strings.ToUpper(manName(c)), date, cli.Version(), roff(manName(c)), roff(c.Short))
	lines, verbatim := strings.Split(strings.TrimRight(help.String(), "\n"), "\n"), false
	for i, line := range lines {
		if indented := strings.HasPrefix(line, " ") || line == "" && verbatim; indented != verbatim {
			verbatim = indented
			b.WriteString(map[bool]string{true: ".nf\n", false: ".fi\n"}[verbatim])
		}
		switch title := strings.TrimSuffix(line, ":"); {
		case verbatim:
			b.WriteString(roff(line) + "\n")
		case line == "":
			b.WriteString(".PP\n")
		case (title != line || line == strings.ToUpper(line)) && (i == 0 || lines[i-1] == "") && i+1 < len(lines) && strings.HasPrefix(lines[i+1], " "):
			fmt.Fprintf(&b, ".SH %s\n", roff(strings.ToUpper(title)))
		default:
			b.WriteString(roff(line) + "\n")
		}
	}
	if verbatim {
		b.WriteString(".fi\n")
	}
	b.WriteString(".SH SEE ALSO\n")
	var also []string
	if c.HasParent() {
		also = append(also, manName(c.Parent()))
	}
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			also = append(also, manName(sub))
		}
	}
	for _, name := range also {
		fmt.Fprintf(&b, ".BR %s (1),\n", roff(name))
	}
	b.WriteString("\\(oqrooftop help TOPIC\\(cq for longer pages\n")
	return b.Bytes()
}

// roff returns a line as it is to be read, with a mark before what would be a request.
func roff(line string) string {
	line = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`).Replace(line)
	if strings.HasPrefix(line, ".") {
		line = `\&` + line
	}
	return line
}
