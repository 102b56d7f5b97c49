package kfp

import (
	"bytes"
	"regexp"
	"strings"
)

// Source is a file that a user gave.
type Source struct {
	// Name is what the user calls it, for messages; Data its content.
	Name string
	Data []byte
}

// Pipeline is a compiled pipeline that has been read and checked.
type Pipeline struct {
	// Name is the file's name, for messages.
	Name string
	Spec PipelineSpec
	// Platform is the platform spec, empty where there is none.
	Platform PlatformSpec
	// raw are the documents as they were read, for what hooks are shown.
	raw map[string]any
	// places are where its fields stand in the file.
	places places
}

// IsIR says whether data looks like a compiled pipeline: one that should be given to [Load], whose errors then say what
// is wrong with it. Argo's manifests and anything with an apiVersion are not.
func IsIR(data []byte) bool {
	if isComment(data) {
		return true
	}
	docs, err := documents(data)
	if err != nil {
		// Broken YAML: go by what it talks about.
		return bytes.Contains(data, []byte("pipelineInfo:")) && bytes.Contains(data, []byte("schemaVersion:"))
	}
	for _, d := range docs {
		m, ok := d.value.(map[string]any)
		if !ok || m["apiVersion"] != nil {
			continue
		}
		for _, key := range []string{"pipelineInfo", "pipeline_info", "deploymentSpec", "deployment_spec", "pipeline_spec", "pipelineSpec", "platforms"} {
			if _, ok := m[key]; ok {
				return true
			}
		}
	}
	return false
}

// isComment looks for the comment that the SDK's compiler writes first, in a file without any content else.
func isComment(data []byte) bool {
	return bytes.HasPrefix(bytes.TrimSpace(data), []byte("# PIPELINE DEFINITION")) && !bytes.Contains(data, []byte("apiVersion:"))
}

// Load reads a compiled pipeline: YAML or JSON; one document, or two with a platform spec, in any order; or a wrapper
// {pipeline_spec, platform_spec}. It checks it as [Pipeline.Validate] does, as far as it could be read. All problems come
// in one [*InvalidError].
func Load(main Source) (*Pipeline, error) {
	p := &Pipeline{Name: main.Name}
	probs := &problems{file: main.Name}
	docs, err := documents(main.Data)
	if err != nil {
		probs.all = append(probs.all, syntaxProblem(main, err))
		return nil, probs.err()
	}
	for _, d := range docs {
		p.places = append(p.places, d.node)
	}
	probs.places = p.places
	specs := p.sort(docs, probs)
	probs.places = p.places
	if specs == 1 && !probs.broken {
		p.validate(probs)
	}
	if err := probs.err(); err != nil {
		return nil, err
	}
	return p, nil
}

// tabIndent matches a line that begins with a tab.
var tabIndent = regexp.MustCompile(`(?m)^ *\t`)

// syntaxProblem turns an error of the YAML reader, "line 3: ...", into a problem.
func syntaxProblem(src Source, err error) Problem {
	p := Problem{File: src.Name, Do: "fix its syntax"}
	text := err.Error()
	if head, rest, ok := strings.Cut(text, ": "); ok && strings.HasPrefix(head, "line ") {
		if n, ok := wholeNumber(strings.TrimPrefix(head, "line ")); ok {
			p.Line, text = int(n), rest
			if strings.Contains(rest, "did not find expected") {
				p.Line++ // the YAML parser, unlike its scanner, counts lines from 0
			}
		}
	}
	if strings.Contains(text, "cannot start any token") && tabIndent.Match(src.Data) {
		p.Do = "indent with spaces, not with tabs"
	}
	p.What = "this is no YAML or JSON: " + text
	return p
}

// sort finds out which document is what, and decodes them. It gives the number of pipeline specs.
func (p *Pipeline) sort(docs []document, probs *problems) (specs int) {
	d := &decoder{problems: probs}
	var platforms int
	for i, doc := range docs {
		m, ok := doc.value.(map[string]any)
		if !ok {
			probs.add("", "give a pipeline that the kfp SDK compiled", "document %d is %s", i+1, describe(doc.value))
			continue
		}
		if spec, platform, ok := wrapper(m); ok {
			for _, path := range []string{"pipelineSpec", "platformSpec"} {
				if _, inside, _ := fieldOf(content(doc.node), path); inside != nil {
					p.places = append(p.places, inside)
				}
			}
			if spec != nil {
				specs++
				p.decodeSpec(d, "pipeline_spec", spec)
			}
			if platform != nil {
				platforms++
				p.decodePlatform(d, "platform_spec", platform)
			}
			continue
		}
		if _, ok := m["platforms"]; ok {
			platforms++
			p.decodePlatform(d, "", m)
			continue
		}
		specs++
		p.decodeSpec(d, "", m)
	}
	if specs == 0 {
		probs.add("", "compile the pipeline again with the kfp SDK", "there is no pipeline spec in it")
	}
	if specs > 1 {
		probs.add("", "give each pipeline in a file of its own", "there are %d pipeline specs in it", specs)
	}
	if platforms > 1 {
		probs.add("", "merge them", "there are %d platform specs in it", platforms)
	}
	return specs
}

func (p *Pipeline) decodeSpec(d *decoder, path string, m any) {
	d.decode(path, m, &p.Spec)
	p.raw, _ = m.(map[string]any)
}

func (p *Pipeline) decodePlatform(d *decoder, path string, m any) {
	d.decode(path, m, &p.Platform)
	if k, ok := p.Platform.Platforms["kubernetes"]; ok {
		d.decode(join(path, "platforms.kubernetes"), k.JSON, &p.Platform.Kubernetes)
	}
}

// wrapper recognises {pipeline_spec, platform_spec}, the form in which the API carries both.
func wrapper(m map[string]any) (spec, platform any, ok bool) {
	for k, v := range m {
		switch lowerCamel(k) {
		case "pipelineSpec":
			spec, ok = v, true
		case "platformSpec":
			platform, ok = v, true
		}
	}
	return spec, platform, ok
}

// Title is the pipeline's name for people.
func (p *Pipeline) Title() string {
	if t := strings.TrimSpace(p.Spec.PipelineInfo.DisplayName); t != "" {
		return t
	}
	return p.Spec.PipelineInfo.Name
}

// rawAt gives the piece of the author's own document at a path of keys, or nil.
func (p *Pipeline) rawAt(keys ...string) any {
	var v any = p.raw
	for _, k := range keys {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		next, ok := m[k]
		for other, o := range m {
			if !ok && lowerCamel(other) == k {
				next = o
			}
		}
		v = next
	}
	return v
}
