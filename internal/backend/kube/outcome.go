package kube

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/sluice-ml/sluice/internal/backend/kube/pod"
	"github.com/sluice-ml/sluice/internal/backend/result"
	"github.com/sluice-ml/sluice/internal/engine"
	"github.com/sluice-ml/sluice/internal/executor/spec"
)

// overdue is how long after its time a pod that is to be deleted may still be there before its node counts as lost.
const overdue = 2 * time.Minute

// exitBroken is the exit code of a container around whose command something broke, see internal/executor.
const exitBroken = 65

// mainAnnotation names the container that has the task's inputs and outputs. kubectl shows its log, too.
const mainAnnotation = "kubectl.kubernetes.io/default-container"

// standing is how far a task's pod is.
type standing struct {
	// Running says that the task's command runs, or has run; Ready that everything in the pod is ready.
	Running, Ready bool
	// Note says what keeps the task from starting; Kind is the same for notes that say the same in other words.
	Note, Kind string
	// End says how it ended; nil while it has not.
	End *ending
}

// ending is how a pod ended.
type ending struct {
	Result engine.Result
	// Stored says that the task's own result lies with the task endpoint, Digest is what it must be. Result is then
	// without meaning: see [look.conclude].
	Stored bool
	Digest string
	// Lost says that the cluster lost the pod before its command began: another pod can do the same without harm.
	Lost bool
	// Stuck says that the pod does not end by itself although nothing can come of it.
	Stuck bool
}

// look is everything that decides about a pod.
type look struct {
	pod  *corev1.Pod
	cmd  *engine.StartTask
	opts result.Options
	now  time.Time
	// gone says that the pod is not there any more; pod is the last that was seen of it.
	gone bool
}

// outcome says how far a pod is. It is pure.
func (l look) outcome() standing {
	s := standing{Running: l.began()}
	if e := l.ended(); e != nil {
		s.End = e
		return s
	}
	if !s.Running {
		s.Kind, s.Note = l.waiting()
		return s
	}
	s.Ready = true
	for _, c := range l.pod.Status.ContainerStatuses {
		s.Ready = s.Ready && c.Ready
	}
	return s
}

// main is the name of the container that reports.
func (l look) main() string {
	if name := l.pod.Annotations[mainAnnotation]; name != "" {
		return name
	}
	return "main"
}

// own says whether a container is the task's own: no sidecar.
func (l look) own(name string) bool {
	return name == l.main() || slices.ContainsFunc(l.cmd.Body.Containers, func(c container) bool { return c.Name == name })
}

// status is that of a container; nil where there is none.
func (l look) status(name string) *corev1.ContainerStatus {
	for i := range l.pod.Status.ContainerStatuses {
		if c := &l.pod.Status.ContainerStatuses[i]; c.Name == name {
			return c
		}
	}
	return nil
}

// began says whether one of the task's own containers was started.
func (l look) began() bool {
	return slices.ContainsFunc(l.pod.Status.ContainerStatuses, func(c corev1.ContainerStatus) bool {
		return l.own(c.Name) && started(&c)
	})
}

// started says whether a container was started: one that could not be, or that the kubelet found no trace of, has no time.
func started(c *corev1.ContainerStatus) bool {
	if t := c.State.Terminated; t != nil {
		return !t.StartedAt.IsZero() && t.StartedAt.Unix() != 0 && !unstartable(t.Reason)
	}
	return c.State.Running != nil
}

func unstartable(reason string) bool {
	return reason == "StartError" || reason == "ContainerCannotRun" || reason == "CreateContainerError"
}

// ended says how the pod ended; nil where it has not.
func (l look) ended() *ending {
	p := l.pod
	main := l.status(l.main())
	if l.over() {
		if main != nil && main.State.Terminated != nil {
			if e := l.reported(main.State.Terminated); e != nil {
				return e
			}
		}
		return l.unreported(main)
	}
	for _, list := range [][]corev1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses} {
		for _, c := range list {
			if w := c.State.Waiting; w != nil && (w.Reason == "InvalidImageName" || w.Reason == "ErrImageNeverPull") {
				e := l.broken(fmt.Sprintf("%s: %s", c.Name, because(w.Reason, w.Message)))
				e.Stuck = true
				return e
			}
		}
	}
	return nil
}

// over says whether nothing more is to come: of what counts, everything has ended, or nobody is left who could tell.
func (l look) over() bool {
	p := l.pod
	if l.gone || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
		return true
	}
	if at := p.DeletionTimestamp; at != nil && (p.Spec.NodeName == "" || l.now.After(at.Add(overdue))) {
		return true
	}
	seen := 0
	for i := range p.Status.ContainerStatuses {
		c := &p.Status.ContainerStatuses[i]
		if !l.own(c.Name) {
			continue
		}
		if c.State.Terminated == nil {
			return false
		}
		seen++
	}
	return seen >= max(1, len(l.cmd.Body.Containers)) // sidecars may take their time
}

// reported reads what the main container reports; nil where it reports nothing.
func (l look) reported(t *corev1.ContainerStateTerminated) *ending {
	if t.Message == "" || unstartable(t.Reason) || t.Reason == "ContainerStatusUnknown" {
		return nil
	}
	var report spec.Report
	err := decodeReport(t.Message, &report)
	switch {
	case err != nil:
		return l.broken(fmt.Sprintf("%s: its result cannot be read: %v", l.main(), err))
	case report.Stored:
		return &ending{Stored: true, Digest: report.Digest}
	case report.Result == nil || report.Result.Phase == "":
		return l.broken(l.main() + ": its result says nothing")
	}
	return l.conclude(report.Result)
}

func decodeReport(text string, into any) error {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber() // see spec.Whole
	if err := decoder.Decode(into); err != nil {
		return err
	}
	if decoder.More() {
		return fmt.Errorf("something follows after %d bytes", decoder.InputOffset())
	}
	return nil
}

// conclude makes the end of what the task itself says of it.
func (l look) conclude(r *spec.Result) *ending {
	result.Whole(r)
	out, _, _ := result.Of(r, *l.cmd, l.opts) // what is wrong with the outputs, the result says
	e := &ending{Result: out}
	e.Result.Host = l.pod.Spec.NodeName
	e.Result.Containers = l.containers()
	if r.Stopped && l.opts.Stopped == nil {
		if phase, why, lost := l.interrupted(); why != "" {
			e.Result.Phase, e.Result.Message = phase, why
			e.Result.Transient, e.Lost = !r.Ran, lost && !r.Ran
			if !r.Ran {
				e.Result.Phase = engine.ErrorPhase
			}
			return e
		}
	}
	if main := l.status(l.main()); e.Result.Phase == engine.FailedPhase && main != nil && main.State.Terminated != nil && main.State.Terminated.Reason == "OOMKilled" {
		e.Result.Message = outOfMemory(l.main(), main.State.Terminated)
	}
	if e.Result.Phase == engine.SucceededPhase || !r.Ran { // it may have waited in vain for one that failed
		if phase, why := l.others(); why != "" {
			e.Result.Phase, e.Result.Message = phase, why
		}
	}
	return e
}

// containers says how each of several containers of the task ended, in the template's order.
func (l look) containers() []engine.ContainerResult {
	if len(l.cmd.Body.Containers) < 2 {
		return nil
	}
	var out []engine.ContainerResult
	for _, c := range l.cmd.Body.Containers {
		one := engine.ContainerResult{Name: c.Name, Phase: engine.FailedPhase, Message: "it was not started"}
		if s := l.status(c.Name); s != nil && s.State.Terminated != nil {
			t := s.State.Terminated
			code := int(t.ExitCode)
			one.ExitCode, one.Started, one.Finished = &code, t.StartedAt.UTC(), t.FinishedAt.UTC()
			one.Phase, one.Message = failure(c.Name, t)
		}
		out = append(out, one)
	}
	return out
}

// failure is the phase of a container that has ended, and why it failed.
func failure(name string, t *corev1.ContainerStateTerminated) (engine.Phase, string) {
	switch {
	case t.ExitCode == 0:
		return engine.SucceededPhase, ""
	case t.Reason == "OOMKilled":
		return engine.FailedPhase, outOfMemory(name, t)
	case t.ExitCode == exitBroken || unstartable(t.Reason) || t.Reason == "ContainerStatusUnknown":
		return engine.ErrorPhase, exitText(name, t)
	}
	return engine.FailedPhase, exitText(name, t)
}

// exitText says how a container ended, as Argo does. A report in its message is for programs.
func exitText(name string, t *corev1.ContainerStateTerminated) string {
	reason := t.Reason
	if reason == "" {
		reason = "Error"
	}
	text := fmt.Sprintf("%s: %s (exit code %d)", name, reason, t.ExitCode)
	if t.Message != "" && !strings.HasPrefix(t.Message, "{") {
		text += ": " + clip(t.Message)
	}
	return text
}

func outOfMemory(name string, t *corev1.ContainerStateTerminated) string {
	return fmt.Sprintf("%s: OOMKilled (exit code %d): it used more memory than its limit; raise the container's resources.limits.memory", name, t.ExitCode)
}

// others says what failed besides the main container; sidecars do not count.
func (l look) others() (engine.Phase, string) {
	for i := range l.pod.Status.ContainerStatuses {
		c := &l.pod.Status.ContainerStatuses[i]
		if t := c.State.Terminated; t != nil && l.own(c.Name) && c.Name != l.main() && t.ExitCode != 0 {
			return failure(c.Name, t)
		}
	}
	return "", ""
}

// unreported makes the end of a pod whose main container says nothing.
func (l look) unreported(main *corev1.ContainerStatus) *ending {
	var t *corev1.ContainerStateTerminated
	if main != nil {
		t = main.State.Terminated
	}
	began := l.began()
	e := l.broken("")
	if t != nil && began {
		code := int(t.ExitCode)
		e.Result.ExitCode, e.Result.Started = &code, t.StartedAt.UTC()
	}
	e.Result.Containers = l.containers()
	if l.opts.Stopped != nil {
		e.Result.Phase, e.Result.Message = engine.FailedPhase, result.StopMessage(*l.opts.Stopped)
		return e
	}
	if phase, why, lost := l.interrupted(); why != "" {
		e.Result.Phase, e.Result.Message = phase, why
		if !began {
			e.Lost = lost
			if lost || phase == engine.ErrorPhase {
				e.Result.Phase, e.Result.Transient = engine.ErrorPhase, true
			}
		}
		return e
	}
	for _, c := range l.pod.Status.InitContainerStatuses {
		if t := c.State.Terminated; t != nil && t.ExitCode != 0 {
			e.Result.Message = exitText(c.Name, t)
			if c.Name == pod.InitContainer {
				e.Result.Transient = true
			} else {
				e.Result.Phase = engine.FailedPhase // the author's own
			}
			return e
		}
	}
	switch {
	case t != nil && t.ExitCode == 0:
		e.Result.Message = l.main() + ": it ended without a result"
	case t != nil:
		e.Result.Phase, e.Result.Message = failure(l.main(), t)
	case main != nil && main.State.Waiting != nil:
		e.Result.Transient = !began
		e.Result.Message = fmt.Sprintf("Pod failed before %s container starts due to %s", main.Name, because(main.State.Waiting.Reason, main.State.Waiting.Message))
	default:
		e.Result.Transient = !began
		e.Result.Message = fmt.Sprintf("pod %s failed without saying why", l.pod.Name)
		if _, why := l.others(); why != "" {
			e.Result.Phase, e.Result.Message = engine.FailedPhase, why
		}
	}
	return e
}

func (l look) broken(message string) *ending {
	return &ending{Result: engine.Result{Phase: engine.ErrorPhase, Message: message, Host: l.pod.Spec.NodeName}}
}

// disruptions are the reasons of Kubernetes' condition DisruptionTarget.
var disruptions = map[string]string{
	corev1.PodReasonPreemptionByScheduler: "the pod was preempted to make room for one of higher priority",
	corev1.PodReasonTerminationByKubelet:  "the kubelet ended the pod",
	"DeletionByTaintManager":              "the pod had to leave its node because of a taint",
	"DeletionByDeviceTaintManager":        "the pod had to leave because of a taint of a device",
	"EvictionByEvictionAPI":               "the pod was evicted",
	"DeletionByPodGC":                     "the pod's node is lost",
}

// interrupted says whether the pod was ended by something else than its own containers and than this program: why, with
// which phase (Argo's: what the kubelet did to the pod is a failure), and whether the cluster took the pod's place away,
// so that another would do.
func (l look) interrupted() (phase engine.Phase, why string, lost bool) {
	p := l.pod
	if p.Status.Message != "" || p.Status.Reason != "" {
		return engine.FailedPhase, because(p.Status.Reason, p.Status.Message), p.Status.Reason != "DeadlineExceeded"
	}
	for _, c := range p.Status.Conditions {
		if c.Type != corev1.DisruptionTarget || c.Status != corev1.ConditionTrue {
			continue
		}
		what := disruptions[c.Reason]
		if what == "" {
			what = "the pod was disrupted"
		}
		return engine.ErrorPhase, what + " (" + because(c.Reason, c.Message) + ")", true
	}
	switch {
	case p.DeletionTimestamp != nil && l.now.After(p.DeletionTimestamp.Add(overdue)) && p.Spec.NodeName != "":
		return engine.ErrorPhase, fmt.Sprintf("the pod's node %s does not answer: the pod was to be deleted at %s and is still there", p.Spec.NodeName, p.DeletionTimestamp.UTC().Format(time.RFC3339)), false
	case p.DeletionTimestamp != nil || l.gone:
		return engine.ErrorPhase, "the pod was deleted", false
	}
	return "", "", false
}

// waiting says what keeps a pod from starting beyond what is usual.
func (l look) waiting() (kind, note string) {
	p := l.pod
	for _, list := range [][]corev1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses} {
		for _, c := range list {
			w := c.State.Waiting
			if w == nil || w.Reason == "" || w.Reason == "ContainerCreating" || w.Reason == "PodInitializing" {
				continue
			}
			kind := w.Reason
			if kind == "ImagePullBackOff" {
				kind = "ErrImagePull" // the two take turns
			}
			return kind, because(w.Reason, w.Message)
		}
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason != "" {
			return c.Reason, because(c.Reason, c.Message)
		}
	}
	return "", ""
}

// because joins a reason and a message.
func because(reason, message string) string {
	message = clip(message)
	switch {
	case reason == "":
		return message
	case message == "":
		return reason
	}
	return reason + ": " + message
}

// maxMessage bounds what is taken of others' messages, in bytes: they go into the journal.
const maxMessage = 1024

func clip(text string) string {
	if len(text) <= maxMessage {
		return text
	}
	return strings.ToValidUTF8(text[:maxMessage], "") + "…"
}
