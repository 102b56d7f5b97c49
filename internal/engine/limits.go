package engine

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sluice-ml/sluice/internal/program"
)

// slots gives whose parallelism limit a node is under: its loop's, else its graph's; nil where there is none.
func (x *step) slots(n *Node) (*work, int64) {
	if n.site.From != fromCall && n.site.From != fromParent {
		return nil, 0
	}
	p := x.s.Node(n.Parent)
	if p != nil && p.Kind == LoopNode && p.call.Loop.Parallelism > 0 {
		return p.work, p.call.Loop.Parallelism
	}
	for p != nil && (p.Kind == Round || p.Kind == LoopNode) {
		p = x.s.Node(p.Parent)
	}
	if p != nil && p.Kind == GraphNode && p.template.Parallelism > 0 {
		return p.work, p.template.Parallelism
	}
	return nil, 0
}

// freeSlot gives a node's slot to the next that waits.
func (x *step) freeSlot(n *Node) {
	if !n.work.Slotted {
		return
	}
	n.work.Slotted = false
	owner, limit := x.slots(n)
	if owner == nil {
		return
	}
	owner.Active--
	x.freed = append(x.freed, freed{owner, limit})
}

// freed is a limit under which a place has become free.
type freed struct {
	owner *work
	limit int64
}

// fillSlots starts what waits under a limit, in order.
func (x *step) fillSlots(f freed) {
	for len(f.owner.Queue) > 0 && int64(f.owner.Active) < f.limit {
		next := x.live(f.owner.Queue[0])
		f.owner.Queue = f.owner.Queue[1:]
		if next == nil || next.Stage != StageSlot {
			continue
		}
		if why := x.refused(next, next.Exit); why != "" {
			x.conclude(next, Result{Phase: FailedPhase, Message: why})
			continue
		}
		f.owner.Active++
		next.work.Slotted = true
		x.lock(next)
	}
}

// failFast takes back what waits for a slot when a call, or an item of its loop, has failed in a graph that wants that.
func (x *step) failFast(n *Node) {
	if n.Hooked || !n.Phase.Bad() || tolerated(n.call, n.Phase) {
		return
	}
	parent := x.s.Node(n.Parent)
	var loop *Node
	switch {
	case n.site.From == fromParent && parent.Kind == LoopNode:
		loop = parent
	case n.site.From != fromCall:
		return
	}
	if g := x.enclosingGraph(n); g != nil && g.template.Graph.FailFast {
		x.dropQueue(g, loop)
	}
}

// dropQueue takes back what waits for a slot of a graph, or of a loop in it. As
// upstream, what never began leaves no node.
func (x *step) dropQueue(graph, loop *Node) {
	for _, owner := range []*Node{graph, loop} {
		if owner == nil || owner.work == nil || len(owner.work.Queue) == 0 {
			continue
		}
		queue := owner.work.Queue
		owner.work.Queue = nil
		for _, id := range queue {
			if c := x.live(id); c != nil && c.Stage == StageSlot {
				c.Phase, c.Message, c.Dropped = OmittedPhase, "omitted: another task has failed (failFast)", true
				if p := x.s.Node(c.Parent); p.work != nil {
					p.work.Lost = append(p.work.Lost, c.ID)
				}
				x.done(c)
			}
		}
		for _, n := range []*Node{graph, loop} {
			if n != nil {
				n.Children = slices.DeleteFunc(n.Children, func(id NodeID) bool { return x.s.Node(id).Dropped })
			}
		}
	}
}

// place starts a leaf when the run may have one more at once, and is not suspended.
func (x *step) place(n *Node) {
	limit := x.m.program.Parallelism
	own := x.s.own
	if x.s.Suspended || (limit > 0 && int64(own.Active) >= limit) {
		n.Stage = StageSlot
		own.Queue = append(own.Queue, n.ID)
		x.s.touch(n)
		return
	}
	own.Active++
	n.work.Placed = true
	x.launch(n)
}

func (x *step) freePlace(n *Node) {
	if !n.work.Placed {
		return
	}
	n.work.Placed = false
	x.s.own.Active--
	x.placeFree = true
}

// fillPlaces starts leaves that wait for a place, in order.
func (x *step) fillPlaces() {
	own, limit := x.s.own, x.m.program.Parallelism
	for len(own.Queue) > 0 && !x.s.Suspended && (limit == 0 || int64(own.Active) < limit) {
		next := x.live(own.Queue[0])
		own.Queue = own.Queue[1:]
		if next == nil || next.Stage != StageSlot {
			continue
		}
		if why := x.refused(next, next.Exit); why != "" {
			x.conclude(next, Result{Phase: FailedPhase, Message: why})
			continue
		}
		own.Active++
		next.work.Placed = true
		x.launch(next)
	}
}

// resolveLocks resolves the placeholders of locks, in one order for all, so that two nodes never wait for each other.
func (x *step) resolveLocks(locks []program.Lock, sc *scope) ([]program.Lock, error) {
	out := make([]program.Lock, len(locks))
	for i, l := range locks {
		for _, t := range []*string{&l.Namespace, &l.Name, &l.Key} {
			v, err := x.m.lang.Text(*t, x.env(sc))
			if err != nil {
				return nil, fmt.Errorf("synchronization: %w", err)
			}
			*t = v
		}
		out[i] = l
	}
	return out, nil
}

// waitsFor says which locks something waits for, in Argo's words.
func (x *step) waitsFor(locks []program.Lock) string {
	names := make([]string, len(locks))
	for i, l := range locks {
		kind := "Mutex"
		switch {
		case l.Database:
			kind = "Database"
		case l.Semaphore:
			kind = "ConfigMap"
		}
		names[i] = or(or(l.Namespace, x.s.Run.Namespace), "default") + "/" + kind + "/" + l.Name
		if l.Key != "" {
			names[i] += "/" + l.Key
		}
	}
	return "Waiting for " + strings.Join(names, ", ") + " lock"
}

// acquired lets a node, or the run, go on with its locks.
func (x *step) acquired(e Acquired) {
	if e.Node == 0 {
		if !x.s.own.Locked || (x.s.Root != 0 && !x.s.own.Reopened) || x.s.Phase.Ended() {
			return
		}
		if e.Failure != "" {
			x.endRun(ErrorPhase, e.Failure)
			return
		}
		if x.s.own.Reopened {
			x.s.own.Reopened = false
			x.goOn()
			return
		}
		x.enterRoot()
		return
	}
	n := x.live(e.Node)
	if n == nil || n.Stage != StageLocks {
		return
	}
	x.s.touch(n)
	if e.Failure != "" {
		n.work.Broken = true
		x.conclude(n, Result{Phase: ErrorPhase, Message: e.Failure})
		return
	}
	x.locked(n)
}
