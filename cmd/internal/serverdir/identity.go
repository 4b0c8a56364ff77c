package serverdir

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

	"github.com/rooftop-dev/rooftop/collect/proc"
)

// Identity identifies a server across runs: its address, model and GPUs.
type Identity struct {
	Host  string   `json:"host"` // "" and the usual loopback addresses mean this machine; or the place of a workload of Kubernetes
	Port  int      `json:"port"` // 0 for a workload
	Model string   `json:"model"`
	GPUs  []string `json:"gpus"` // UUIDs
	// Machine is the host name of this machine for a local server, because several machines
	// may share a state directory. OpenStore sets it.
	Machine string `json:"machine,omitempty"`
	// Addresses are the resolved addresses of Host, so that two tuners that name a remote
	// server differently get the same lock. They are not part of the identity.
	// [Identity.Resolved] sets them.
	Addresses []string `json:"addresses,omitempty"`
	// Objects name what a run changes of this machine, such as a container, so that two tuners
	// that reach it by different ports get the same lock. They are not part of the identity.
	// [Store.Claim] sets them.
	Objects []string `json:"objects,omitempty"`
	// Owner is the user who may tune the server besides root, so that nobody else can take the
	// lock from them; nil if anybody may. It is not part of the identity.
	Owner *int `json:"owner,omitempty"`
	// URL is the last base URL of the server. It is not part of the identity.
	URL string `json:"url"`
}

// normal returns the identity in canonical form.
func (id Identity) normal() Identity {
	id.Host = strings.ToLower(strings.Trim(id.Host, "[]"))
	if name, ok := local(id.Host); ok {
		id.Host = name
		if id.Machine == "" {
			id.Machine = Hostname()
		}
	}
	id.GPUs = slices.Clone(id.GPUs)
	slices.Sort(id.GPUs)
	return id
}

const localhost = "localhost"

// usualLoopback are the loopback addresses that names of this machine resolve to: the last
// is Debian's for its host name.
var usualLoopback = []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.IPv6Loopback(), netip.MustParseAddr("127.0.1.1")}

// local returns the name under which a host that is this machine is locked, so that two
// tuners that name a server differently get the same lock: localhost, or a loopback address
// that no name means, where another server may listen on the same port.
func local(host string) (name string, ok bool) {
	if host == "" || host == localhost || host == strings.ToLower(Hostname()) {
		return localhost, true
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return "", false
	}
	ip = ip.Unmap().WithZone("")
	if ip.IsLoopback() && !slices.Contains(usualLoopback, ip) {
		return ip.String(), true
	}
	own, _ := proc.OwnAddresses() // on failure only loopback counts
	return localhost, proc.IsLocal(ip, own)
}

// Hostname returns the name of this host, "" if unknown.
func Hostname() string {
	name, err := os.Hostname()
	if err != nil {
		return ""
	}
	return name
}

// hashBytes is the number of bytes of a hash in a directory name. It separates servers
// whose readable parts are equal.
const hashBytes = 4

// Name returns the name of the server's directory: a readable part and a hash.
func (id Identity) Name() string {
	id = id.normal()
	sum := sha256.Sum256([]byte(strings.Join(append([]string{id.Host, id.Machine, strconv.Itoa(id.Port), id.Model}, id.GPUs...), "\x00")))
	name := id.Host + "-" + strconv.Itoa(id.Port)
	if model := plain(id.Model[strings.LastIndexByte(id.Model, '/')+1:]); model != "" {
		name += "-" + model
	}
	return plain(name) + "-" + hex.EncodeToString(sum[:hashBytes])
}

// address returns host:port, which two tuners of one server share whatever else they know.
func (id Identity) address() string {
	if id.Port == 0 {
		return id.Host
	}
	return id.Host + ":" + strconv.Itoa(id.Port)
}

// places returns all addresses and objects that are locked for a server, sorted.
func (id Identity) places() []string {
	list := append([]string{id.address()}, id.Objects...)
	for _, a := range id.Addresses {
		list = append(list, a+":"+strconv.Itoa(id.Port))
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// resolveWithin limits the lookup of a host's addresses.
const resolveWithin = 2 * time.Second

// Resolved returns the identity with the addresses of the server's host; unchanged if they
// cannot be resolved.
func (id Identity) Resolved(ctx context.Context) Identity {
	return id.resolved(ctx, net.DefaultResolver.LookupNetIP)
}

// namedPorts are ports on which one address serves many servers by name.
var namedPorts = [...]int{80, 443}

func (id Identity) resolved(ctx context.Context, lookup func(ctx context.Context, network, host string) ([]netip.Addr, error)) Identity {
	host := id.normal().Host
	if _, ok := local(host); ok || id.Port == 0 || slices.Contains(namedPorts[:], id.Port) {
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
		if _, ok := local(text); ok {
			text = localhost
		}
		id.Addresses = append(id.Addresses, text)
	}
	slices.Sort(id.Addresses)
	id.Addresses = slices.Compact(id.Addresses)
	return id
}

// String returns "MODEL at HOST:PORT", or only the address without a model.
func (id Identity) String() string {
	at := id.address()
	if id.Model == "" {
		return at
	}
	return id.Model + " at " + at
}

// plain returns at most 80 characters that every file system accepts; it replaces others by
// underscores.
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
	if have, err := read(path); err == nil && string(have) == string(data)+"\n" {
		return nil
	}
	return WriteFile(path, append(data, '\n'), 0o600)
}

// ReadIdentity reads the identity of the server of a directory.
func ReadIdentity(dir string) (Identity, error) {
	var id Identity
	data, err := read(filepath.Join(dir, identityName))
	if errors.Is(err, fs.ErrNotExist) {
		return id, fmt.Errorf("%s is not the directory of a server: it has no %s", dir, identityName)
	}
	if err != nil {
		return id, err
	}
	if err := json.Unmarshal(data, &id); err != nil {
		return id, fmt.Errorf("%s is damaged (%w): mend it, or move its directory away once the server runs as it should", filepath.Join(dir, identityName), err)
	}
	return id, nil
}
