package main

import (
	"crypto/tls"
	"crypto/x509"
	"strings"

	"github.com/rooftop-dev/rooftop/collect"
)

// apiKey is the key that requests carry, from a file or a variable, never from a
// flag: command lines are public on a machine.
func apiKey(env func(string) (string, bool), file string) (string, error) {
	key, _ := env("ROOFTOP_API_KEY")
	from := "the variable ROOFTOP_API_KEY"
	if file != "" {
		text, err := readFile(file, 16<<10)
		if err != nil {
			return "", usage("--api-key-file: %w", err)
		}
		key, from = string(text), "--api-key-file "+file
	}
	if _, err := collect.NewSecret(key); err != nil {
		return "", usage("%s: %w", from, err)
	}
	return strings.TrimSpace(key), nil
}

// trusted is a TLS configuration that trusts the certificates of a file instead of
// the system's; nil without a file.
func trusted(caFile string) (*tls.Config, error) {
	if caFile == "" {
		return nil, nil
	}
	pem, err := readFile(caFile, 4<<20)
	if err != nil {
		return nil, usage("--ca-file: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, usage("--ca-file: %s holds no PEM certificate", caFile)
	}
	return &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, nil
}
