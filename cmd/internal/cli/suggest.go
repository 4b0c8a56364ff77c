package cli

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rooftop-dev/rooftop/catalog"
)

// maxTypos is the maximum number of wrong letters for a suggestion.
const maxTypos = 2

// typos returns how many wrong letters a word may have for a suggestion: one in three, so that other words of a few
// letters are not taken for it.
func typos(word string) int { return min(maxTypos, len(word)/3) }

// FlagError adds the accepted values or a similar flag to an error: cobra suggests commands, but
// not flags.
func FlagError(c *cobra.Command, err error) error {
	return Usagef("%s: %w%s; see '%s --help'", CommandName(c), flagValueError(err), suggestedFlag(c, err), c.CommandPath())
}

// CommandName returns the name of a command as it is typed after that of the program: "catalog show".
func CommandName(c *cobra.Command) string {
	return strings.TrimPrefix(c.CommandPath(), c.Root().Name()+" ")
}

// suggestedFlag returns the flag most similar to the unknown one, as an addition to the error, or
// "".
func suggestedFlag(c *cobra.Command, err error) string {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) || len(unknown.GetSpecifiedName()) < 2 {
		return ""
	}
	var names []string
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	best := Nearest(unknown.GetSpecifiedName(), names...)
	if best == "" {
		return ""
	}
	return "; did you mean --" + best + "?"
}

// flagValueError explains which values a flag accepts.
func flagValueError(err error) error {
	var invalid *pflag.InvalidValueError
	if !errors.As(err, &invalid) {
		return err
	}
	flag, text := invalid.GetFlag(), strconv.Quote(invalid.GetValue())
	if choice, ok := flag.Value.(*choice); ok {
		return fmt.Errorf("--%s must be %s, not %s%s", flag.Name, choice.list(), text, Suggestion(invalid.GetValue(), choice.values...))
	}
	if _, err := strconv.ParseFloat(invalid.GetValue(), 64); err == nil && flag.Value.Type() == "duration" {
		return fmt.Errorf("--%s %s has no unit: write %ss or %sm", flag.Name, text, invalid.GetValue(), invalid.GetValue())
	}
	takes, known := map[string]string{
		"duration": "a time, as in 30s or 5m", "int": "a whole number", "uint64": "a whole number, not below zero", "float64": "a number", "bool": "true or false",
	}[flag.Value.Type()]
	if !known {
		return err
	}
	return fmt.Errorf("--%s %s: give %s", flag.Name, text, takes)
}

// Suggestion returns the most similar word as an addition to an error, or "" if none is similar.
func Suggestion(word string, words ...string) string {
	best := Nearest(word, words...)
	if best == "" {
		return ""
	}
	return "; did you mean " + best + "?"
}

// Nearest returns the only word that begins as the given one, else the first of the most similar words, or "" if none
// is similar.
func Nearest(word string, words ...string) string {
	longer := func(w string) bool { return !strings.HasPrefix(w, word) }
	if whole := slices.DeleteFunc(slices.Clone(words), longer); word != "" && len(whole) == 1 {
		return whole[0]
	}
	best, least := "", typos(word)+1
	for _, w := range words {
		n := catalog.Distance(word, w)
		if n == 2 && sorted(word) == sorted(w) {
			n = 1 // two letters that are exchanged are one mistake
		}
		if n < least {
			best, least = w, n
		}
	}
	return best
}

// sorted returns the letters of a word in their order.
func sorted(word string) string {
	letters := []byte(word)
	slices.Sort(letters)
	return string(letters)
}
