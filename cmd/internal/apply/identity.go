package apply

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Identity is what makes a server the same one from run to run: where it answers,
// what it serves, on which GPUs.
type Identity struct {
	Host  string   `json:"host"` // "" and loopback are this machine
	Port  int      `json:"port"`
	Model string   `json:"model"`
	GPUs  []string `json:"gpus"` // UUIDs
	// Machine is the name of the machine that a server of this machine is on: a state
	// directory may be shared by several. It is filled in.
	Machine string `json:"machine,omitempty"`
	// Addresses are what Host stands for: two tuners that call a server of another
	// machine differently must meet as well. They do not distinguish, and
	// [Identity.Resolved] fills them in.
	Addresses []string `json:"addresses,omitempty"`
	// URL is the base URL that it was last reached by; it does not distinguish.
	URL string `json:"url"`
}

// normal spells what is the same alike.
func (id Identity) normal() Identity {
	id.Host = strings.ToLower(strings.Trim(id.Host, "[]"))
	if local(id.Host) || own(id.Host) {
		id.Host = "localhost"
		if id.Machine == "" {
			id.Machine = machine()
		}
	}
	id.GPUs = slices.Clone(id.GPUs)
	slices.Sort(id.GPUs)
	return id
}

// local says that a host is this machine by its name alone.
func local(host string) bool {
	if host == "" || host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && (ip.IsLoopback() || ip.IsUnspecified())
}

// own says that a host is this machine by the machine's own name or one of its
// addresses: two tuners that call a server differently must meet all the same.
func own(host string) bool {
	if name := machine(); name != "" && host == strings.ToLower(name) {
		return true
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return false
	}
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return false
	}
	return slices.ContainsFunc(addresses, func(a net.Addr) bool {
		prefix, err := netip.ParsePrefix(a.String())
		return err == nil && prefix.Addr().WithZone("") == ip.WithZone("").Unmap()
	})
}

func machine() string {
	name, err := os.Hostname()
	if err != nil {
		return ""
	}
	return name
}

// hashed is how many bytes of a hash stand in a name: 2^32 servers of one user
// would have to share a readable part before two met by chance.
const hashed = 4

// Name is the name of the server's directory: readable, and distinct.
func (id Identity) Name() string {
	id = id.normal()
	sum := sha256.Sum256([]byte(strings.Join(append([]string{id.Host, id.Machine, strconv.Itoa(id.Port), id.Model}, id.GPUs...), "\x00")))
	name := id.Host + "-" + strconv.Itoa(id.Port)
	if model := plain(id.Model[strings.LastIndexByte(id.Model, '/')+1:]); model != "" {
		name += "-" + model
	}
	return plain(name) + "-" + hex.EncodeToString(sum[:hashed])
}

// address is what two tuners of one server share whatever else they know of it.
func (id Identity) address() string { return id.Host + ":" + strconv.Itoa(id.Port) }

// places are all addresses by which two tuners of one server meet, in order.
func (id Identity) places() []string {
	list := []string{id.address()}
	for _, a := range id.Addresses {
		list = append(list, a+":"+strconv.Itoa(id.Port))
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// resolveWithin bounds the question for the addresses of a host: no answer is none.
const resolveWithin = 2 * time.Second

// Resolved adds the addresses of a server's host, as far as they can be told.
func (id Identity) Resolved(ctx context.Context) Identity {
	return id.resolved(ctx, net.DefaultResolver.LookupNetIP)
}

// namedPorts are those where one address answers for many servers, each by its name.
var namedPorts = [...]int{80, 443}

func (id Identity) resolved(ctx context.Context, lookup func(ctx context.Context, network, host string) ([]netip.Addr, error)) Identity {
	host := id.normal().Host
	if host == "localhost" || slices.Contains(namedPorts[:], id.Port) {
		return id
	}
	ctx, cancel := context.WithTimeout(ctx, resolveWithin)
	defer cancel()
	list, err := lookup(ctx, "ip", host)
	if err != nil {
		return id
	}
	id.Addresses = nil
	for _, ip := range list {
		text := ip.Unmap().WithZone("").String()
		if local(text) || own(text) {
			text = "localhost"
		}
		id.Addresses = append(id.Addresses, text)
	}
	slices.Sort(id.Addresses)
	id.Addresses = slices.Compact(id.Addresses)
	return id
}

// String names the server for people.
func (id Identity) String() string {
	at := id.address()
	if id.Model == "" {
		return at
	}
	return id.Model + " at " + at
}

// plain keeps what any file system takes.
func plain(s string) string {
	s = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '-' || r == '_' {
			return r
		}
		return '_'
	}, s)
	s = strings.Trim(s, "._")
	return s[:min(len(s), 80)]
}

func writeIdentity(dir string, id Identity) error {
	data, err := json.MarshalIndent(id, "", "  ")
	if err != nil {
		return err
	}
	path := filepath.Join(dir, identityName)
	if have, err := os.ReadFile(path); err == nil && string(have) == string(data)+"\n" {
		return nil
	}
	return writeAtomic(path, append(data, '\n'), 0o600)
}

func readIdentity(dir string) (Identity, error) {
	var id Identity
	data, err := os.ReadFile(filepath.Join(dir, identityName))
	if errors.Is(err, fs.ErrNotExist) {
		return id, fmt.Errorf("%s is no directory of a server: %s is not there", dir, identityName)
	}
	if err != nil {
		return id, err
	}
	if err := json.Unmarshal(data, &id); err != nil {
		return id, fmt.Errorf("%s: %w", filepath.Join(dir, identityName), err)
	}
	return id, nil
}
