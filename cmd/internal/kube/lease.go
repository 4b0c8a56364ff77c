package kube

import (
	"context"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Names of leases in the API.
const (
	leaseGroup    = "coordination.k8s.io"
	leaseResource = "leases"
)

// Times of a lease.
const (
	leaseFor   = time.Minute      // without a renewal
	leaseMost  = 10 * time.Minute // of one that something else wrote
	leaseRenew = 20 * time.Second
	leasePoll  = 2 * time.Second
	// leaseRelease limits the end of a lease.
	leaseRelease = 5 * time.Second
)

// Lease is the lease of a workload, an object of the cluster with one holder at a time, which may
// change the workload. It expires if its holder is killed.
type Lease struct {
	w           *Workload
	run, holder string
	stop        func() // ends the renewals; nil while it is not held
}

// Lease returns the lease of the workload for a process of a run. Other processes of the run may take it over;
// without a run there are none.
func (w *Workload) Lease(run, process string) *Lease {
	return &Lease{w: w, run: run, holder: strings.TrimPrefix(run+", "+process, ", ")}
}

// Name returns the name of the object.
func (l *Lease) Name() string { return "rooftop-" + l.w.kind.name + "-" + l.w.Name }

// leased is a lease as the API server has it.
type leased struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Metadata   metav1.ObjectMeta `json:"metadata"`
	Spec       struct {
		Holder      string           `json:"holderIdentity"`
		Seconds     int              `json:"leaseDurationSeconds"`
		Acquired    metav1.MicroTime `json:"acquireTime"`
		Renewed     metav1.MicroTime `json:"renewTime"`
		Transitions int              `json:"leaseTransitions"`
	} `json:"spec"`
}

// lasts returns how long a lease lasts without a renewal: a minute, unless someone else wrote it.
func (s *leased) lasts() time.Duration {
	return min(time.Duration(s.Spec.Seconds)*time.Second, leaseMost)
}

// list is the path of leases.
func (l *Lease) list() string {
	return "/apis/" + leaseGroup + "/v1/namespaces/" + l.w.Namespace + "/" + leaseResource
}

// read returns the lease as it is; an empty one if there is none.
func (l *Lease) read(ctx context.Context) (*leased, error) {
	have := new(leased)
	err := l.w.get(ctx, l.list()+"/"+l.Name(), nil, have)
	if apierrors.IsNotFound(err) {
		return new(leased), nil
	}
	return have, err
}

// mine reports whether the run has a lease, or no one has.
func (l *Lease) mine(have *leased) bool {
	by := have.Spec.Holder
	return by == "" || by == l.holder || l.run != "" && strings.HasPrefix(by, l.run+", ")
}

// taken returns an error that says who has a lease.
func (l *Lease) taken(have *leased) error {
	return fmt.Errorf("another rooftop tunes %s: %s, since %s; once that has ended, its lease %s ends within %d s", l.w,
		have.Spec.Holder, have.Spec.Acquired.Local().Format("2006-01-02 15:04:05"), l.Name(), have.Spec.Seconds)
}

// Check returns an error that names another holder of the lease; nil if there is none. It changes nothing.
func (l *Lease) Check(ctx context.Context) error {
	have, err := l.read(ctx)
	if err == nil && !l.mine(have) && time.Since(have.Spec.Renewed.Time) < have.lasts() {
		err = l.taken(have)
	}
	return err
}

// Take takes the lease, or renews it, and keeps it until Release. One of another holder is taken over when
// no one has renewed it for as long as it lasts, as seen from here: clocks of machines differ. patient waits
// for that even if it was renewed lately.
func (l *Lease) Take(ctx context.Context, patient bool) error {
	if err := l.take(ctx, patient); err != nil || l.stop != nil {
		return err
	}
	renewals, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	l.stop = func() { cancel(); <-done }
	go func() {
		defer close(done)
		for {
			select {
			case <-renewals.Done():
				return
			case <-time.After(leaseRenew):
			}
			// If someone has taken it over, the next Take says so.
			limited, cancel := context.WithTimeout(renewals, leaseRenew)
			_ = l.take(limited, false)
			cancel()
		}
	}()
	return nil
}

func (l *Lease) take(ctx context.Context, patient bool) error {
	var seen *leased // of another holder
	for began := time.Now(); ; {
		have, err := l.read(ctx)
		if err != nil {
			return err
		}
		version := have.Metadata.ResourceVersion
		switch {
		case l.mine(have), seen != nil && seen.Metadata.ResourceVersion == version && time.Since(began) >= have.lasts():
			if err := l.write(ctx, have); err == nil || !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) && !apierrors.IsNotFound(err) {
				return err
			}
			continue // someone else was faster
		case seen != nil && seen.Metadata.ResourceVersion != version, !patient && time.Since(have.Spec.Renewed.Time) < have.lasts():
			return l.taken(have)
		}
		seen = have
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(min(leasePoll, have.lasts())):
		}
	}
}

// write makes the run the holder, if the lease is still as it was read.
func (l *Lease) write(ctx context.Context, have *leased) error {
	now, s := metav1.NowMicro(), &have.Spec
	if s.Holder != l.holder {
		s.Acquired = now
	}
	if s.Holder != "" && s.Holder != l.holder {
		s.Transitions++
	}
	s.Holder, s.Renewed, s.Seconds = l.holder, now, int(leaseFor.Seconds())
	r := l.w.client.Put().AbsPath(l.list() + "/" + l.Name())
	if have.Metadata.ResourceVersion == "" {
		r = l.w.client.Post().AbsPath(l.list())
	}
	have.APIVersion, have.Kind, have.Metadata.Name = leaseGroup+"/v1", "Lease", l.Name()
	return l.w.send(ctx, r, have, nil)
}

// Release gives the lease up, if it is held.
func (l *Lease) Release() {
	if l.stop == nil {
		return
	}
	l.stop()
	l.stop = nil
	ctx, cancel := context.WithTimeout(context.Background(), leaseRelease)
	defer cancel()
	have, err := l.read(ctx)
	if err != nil || have.Spec.Holder != l.holder {
		return // it ends by itself, or is another's
	}
	as := metav1.Preconditions{ResourceVersion: &have.Metadata.ResourceVersion}
	_ = l.w.send(ctx, l.w.client.Delete().AbsPath(l.list()+"/"+l.Name()), metav1.DeleteOptions{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"}, Preconditions: &as,
	}, nil)
}
