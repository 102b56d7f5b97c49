// Command conformance runs sluice on manifests that nobody here wrote and compares what it does with what the peers do.
//
//	go run ./test/conformance -corpus ../shared/conformance -sluice bin/sluice [-suite argo] [-class local] [-run loops]
//
// It writes every verdict to build/conformance.json, prints each difference node by node, and exits with 1 when a class
// passes less often than it must or when docs/conformance.md does not list exactly what fails. docs/conformance.md says
// how the comparison works.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/sluice-ml/sluice/test/conformance/corpus"
	"github.com/sluice-ml/sluice/test/conformance/verdict"
)

// asked are the classes that each suite must run; the lint suite takes every class of both corpora.
var asked = map[string][]string{
	"argo":     {"local", "suspend", "rejected"},
	"kfp":      {"local", "invalid", "pip"},
	"kube":     {"local", "cluster", "store", "cron"},
	"kube-kfp": {"cluster", "importer"},
}

// onCluster names the corpus of each suite that runs on a cluster.
var onCluster = map[string]string{"kube": "argo", "kube-kfp": "kfp"}

type options struct {
	corpus, sluice, out, doc, requirements, work, bin, cluster, s3 string
	packages, instance                                             string
	suites, classes                                                []string
	match, runtime, name                                           string
	most, every                                                    int
	limit                                                          time.Duration
	parallel                                                       int
	percent                                                        float64
	keep, verbose                                                  bool
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ok, err := run(ctx, parse())
	if err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		stop()
		os.Exit(2)
	}
	if !ok {
		stop()
		os.Exit(1)
	}
}

func parse() options {
	var o options
	var suites, classes string
	flag.StringVar(&o.corpus, "corpus", "../shared/conformance", "folder of the corpora")
	flag.StringVar(&o.sluice, "sluice", "bin/sluice", "the program to test")
	flag.StringVar(&o.out, "out", "build/conformance.json", "where to write the verdicts")
	flag.StringVar(&o.doc, "doc", "docs/conformance.md", "the list of corrections to apply and of remaining differences to check; empty: neither")
	flag.StringVar(&o.requirements, "requirements", "test/requirements.txt", "Python packages that KFP components import")
	flag.StringVar(&o.work, "work", "build/conformance", "folder for what is kept between runs (the Python environment)")
	flag.StringVar(&o.bin, "bin", "test/conformance/bin", "folder of programs that shorten long naps")
	flag.StringVar(&o.cluster, "cluster", "../shared/cluster", "folder of scripts that bring a cluster up, for the suite kube where KUBECONFIG is not set")
	flag.StringVar(&o.s3, "s3", "", "a program that serves a folder as an object store (versitygw), for the suite kube and its class store")
	flag.StringVar(&o.packages, "packages", "test/kfp-packages.txt", "what components of pipelines install when they start, for their images on a cluster")
	flag.StringVar(&o.instance, "instance", "", "instance ID of the controller of the suites kube and kube-kfp, where others share the cluster")
	flag.StringVar(&suites, "suite", "argo,kfp,lint", "suites to run")
	flag.StringVar(&classes, "class", "", "classes to run; empty: those that each suite must")
	flag.StringVar(&o.match, "run", "", "run only manifests whose path contains this")
	flag.StringVar(&o.name, "name", "conformance", "what the totals are called")
	flag.StringVar(&o.runtime, "runtime", "", "run Argo tasks in containers by podman or docker, from images packed here; only manifests whose images are")
	flag.IntVar(&o.most, "n", 0, "run at most so many manifests of a suite; 0: all")
	flag.IntVar(&o.every, "every", 1, "run every so many-th manifest of a suite: a sample")
	flag.DurationVar(&o.limit, "timeout", 4*time.Minute, "limit for one manifest")
	flag.IntVar(&o.parallel, "parallel", 4, "how many manifests run at once")
	flag.Float64Var(&o.percent, "percent", 95, "share of each class that must pass")
	flag.BoolVar(&o.keep, "keep", false, "keep the home folder of manifests that fail, and say where it is")
	flag.BoolVar(&o.verbose, "v", false, "print a line for each manifest that passes, too")
	flag.Parse()
	o.suites = strings.Split(suites, ",")
	if classes != "" {
		o.classes = strings.Split(classes, ",")
	}
	return o
}

// suite tests manifests one by one. It gives the differences of one, none for a pass.
type suite interface {
	// prepare sets up what all manifests share. A reason says why the suite cannot run on this machine.
	prepare(ctx context.Context) (reason string, err error)
	check(ctx context.Context, m corpus.Manifest) []string
}

func run(ctx context.Context, o options) (bool, error) {
	if info, err := os.Stat(o.corpus); !(err == nil && info.IsDir()) {
		fmt.Printf("%s: skipped: no manifests at %s (set CONFORMANCE to the folder that has them)\n", o.name, o.corpus)
		fmt.Printf("%s: 0 passed, 0 failed, 1 skipped\n", o.name)
		return true, nil
	}
	for _, path := range []*string{&o.corpus, &o.sluice, &o.work, &o.requirements, &o.bin, &o.cluster, &o.packages} {
		absolute, err := filepath.Abs(*path)
		if err != nil {
			return false, err
		}
		*path = absolute
	}
	if _, err := os.Stat(o.sluice); err != nil {
		return false, fmt.Errorf("no program to test (make build): %w", err)
	}
	corpora, err := corpus.Read(o.corpus)
	if err != nil {
		return false, err
	}
	report := &verdict.Report{}
	for _, name := range o.suites {
		if err := runSuite(ctx, o, name, corpora, report); err != nil {
			return false, err
		}
	}
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	return conclude(o, report)
}

func conclude(o options, report *verdict.Report) (bool, error) {
	if err := report.Write(o.out); err != nil {
		return false, err
	}
	ok := report.Print(os.Stdout, o.name, o.percent)
	if o.doc == "" {
		return ok, nil
	}
	found, err := verdict.CheckDocument(o.doc, report.Results())
	if err != nil {
		return false, err
	}
	for _, text := range found {
		fmt.Println(text)
	}
	return ok && len(found) == 0, nil
}

// runSuite runs the manifests of a suite, some at once, and adds the verdicts to the report.
func runSuite(ctx context.Context, o options, name string, corpora []corpus.Suite, report *verdict.Report) error {
	s, manifests, err := choose(o, name, corpora)
	if err != nil {
		return err
	}
	if len(manifests) == 0 {
		return nil
	}
	reason, err := s.prepare(ctx)
	if err != nil {
		return err
	}
	if reason != "" {
		fmt.Printf("%s: skipped: %s\n%s-%s: 0 passed, 0 failed, %d skipped\n", name, reason, o.name, name, len(manifests))
		return nil
	}
	if k, ok := s.(*kubeSuite); ok {
		left := len(manifests)
		manifests = slices.DeleteFunc(manifests, func(m corpus.Manifest) bool { return k.skip(m) != "" })
		if left -= len(manifests); left > 0 {
			fmt.Printf("%s: skipped %d: they need an object store, see -s3\n", name, left)
		}
	}
	var group sync.WaitGroup
	slots := make(chan struct{}, max(1, o.parallel))
	for _, m := range manifests {
		select {
		case <-ctx.Done(): // run tells of it
			continue
		case slots <- struct{}{}:
		}
		group.Go(func() {
			defer func() { <-slots }()
			started := time.Now()
			found := s.check(ctx, m)
			took := time.Since(started)
			report.Add(verdict.Result{
				Suite: name, File: m.File, Class: m.Class, Pass: len(found) == 0, Reason: strings.Join(found, "\n"),
				Seconds: float64(took.Milliseconds()) / 1000,
			})
			if text := describe(name, m, found, took, o.verbose); text != "" {
				fmt.Print(text)
			}
		})
	}
	group.Wait()
	if f, ok := s.(interface{ finish(context.Context) error }); ok {
		return f.finish(ctx)
	}
	return nil
}

func choose(o options, name string, corpora []corpus.Suite) (suite, []corpus.Manifest, error) {
	var s suite
	var manifests []corpus.Manifest
	classes := o.classes
	if len(classes) == 0 {
		classes = asked[name]
	}
	programs := map[string]string{} // by corpus
	for _, c := range corpora {
		programs[c.Name] = c.Bin
		if name == "lint" || c.Name == name || c.Name == onCluster[name] {
			manifests = append(manifests, c.Manifests...)
		}
		if c.Name == name {
			switch name {
			case "argo":
				s = &argoSuite{options: o, programs: c.Bin}
			case "kfp":
				s = &kfpSuite{options: o, programs: c.Bin}
			}
		}
	}
	switch name {
	case "lint":
		s = &lintSuite{options: o}
	case "kube":
		s = &kubeSuite{kubeSite{options: o, programs: programs["argo"], python: programs["kfp"]}}
	case "kube-kfp":
		s = &kubeKFPSuite{kubeSite{options: o, programs: programs["argo"], python: programs["kfp"], class: "standard"}}
	}
	if s == nil {
		return nil, nil, fmt.Errorf("there is no suite %q: choose from argo, kfp, kube, kube-kfp, lint", name)
	}
	if o.doc != "" {
		if err := correct(o.doc, manifests); err != nil {
			return nil, nil, err
		}
	}
	manifests = slices.DeleteFunc(manifests, func(m corpus.Manifest) bool {
		return !strings.Contains(m.File, o.match) || len(classes) > 0 && !slices.Contains(classes, m.Class) ||
			o.runtime != "" && !onlyPacked(m)
	})
	if o.every > 1 {
		var sample []corpus.Manifest
		for i := 0; i < len(manifests); i += o.every {
			sample = append(sample, manifests[i])
		}
		manifests = sample
	}
	if o.most > 0 && len(manifests) > o.most {
		manifests = manifests[:o.most]
	}
	return s, manifests, nil
}

// correct applies the documented corrections of the corpora's indices.
func correct(doc string, manifests []corpus.Manifest) error {
	corrections, err := verdict.ReadCorrections(doc)
	if err != nil {
		return err
	}
	for i := range manifests {
		m := &manifests[i]
		c := corrections[m.Suite+" "+m.File]
		if c.State != "" {
			m.State = c.State
		}
		for name, value := range c.Inputs {
			if m.Inputs == nil {
				m.Inputs = map[string]any{}
			}
			m.Inputs[name] = value
		}
	}
	return nil
}

// describe is what is printed of one manifest, in one piece since several run at once.
func describe(suite string, m corpus.Manifest, found []string, took time.Duration, verbose bool) string {
	if len(found) == 0 {
		if !verbose {
			return ""
		}
		return fmt.Sprintf("pass  %s %s %s (%.1f s)\n", suite, m.Class, m.File, took.Seconds())
	}
	return fmt.Sprintf("FAIL  %s %s %s (%.1f s)\n        %s\n", suite, m.Class, m.File, took.Seconds(),
		strings.ReplaceAll(strings.Join(found, "\n"), "\n", "\n        "))
}
