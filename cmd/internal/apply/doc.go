// Package apply changes a server and can undo the change: a child process of rooftop, a found
// process that is restarted in place, or one that something else restarts: a program of the
// engineer's, systemd, Docker. Nothing runs without explicit consent, and nothing is touched
// before the journal has it.
//
//	Applier  one way to change a server: Exec, Attach, Managed
//	Survey   what interrupted runs left, and what to do about it
//	Repair   puts the kept launch back
//
// Each act is recorded before it and its result after it, each record synced: a rooftop that
// is killed at any instant leaves a journal that shows what was under way. Exact launches hold
// secrets (environment, API keys) and are stored only in files that their owner alone reads.
package apply
