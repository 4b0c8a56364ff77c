package attach

import (
	"strings"

	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
	"github.com/rooftop-dev/rooftop/collect"
)

// APIKey returns the key for requests, from the file or the variable ROOFTOP_API_KEY; "" if
// neither is given. There is no flag for it, because command lines are public on a machine.
func APIKey(env func(string) (string, bool), file string) (string, error) {
	key, _ := env("ROOFTOP_API_KEY")
	from := "the variable ROOFTOP_API_KEY"
	if file != "" {
		text, err := cli.ReadFile(file, 16<<10)
		if err != nil {
			return "", cli.Usagef("--api-key-file: %w", err)
		}
		key, from = string(text), "--api-key-file "+file
		if strings.TrimSpace(key) == "" {
			return "", cli.Usagef("%s is empty: it must hold the key", from)
		}
	}
	if _, err := collect.NewSecret(key); err != nil {
		return "", cli.Usagef("%s: %w", from, err)
	}
	return strings.TrimSpace(key), nil
}
