package spec

// The task endpoint's paths, below its base URL. docs/task-endpoint.md tells the protocol.
const (
	// SignPath takes an [Ask] by POST and gives an [Answer].
	SignPath = "/v1/artifacts/sign"
	// DataPath carries the bytes of artifacts whose store cannot sign: GET and PUT, with an Ask in the query.
	DataPath = "/v1/artifacts/data"
	// ResultPath takes a [Result] by PUT.
	ResultPath = "/v1/result"
)

// MaxAsk bounds an [Ask] as JSON and MaxStored a [Result] at ResultPath, in bytes.
const (
	MaxAsk    = 2 << 20
	MaxStored = 64 << 20
)

// Op is what a task wants to do with an object of an artifact.
type Op string

// The operations. Of inputs the first three are allowed, of outputs all but OpGet.
const (
	OpStat   Op = "stat"   // Answer.Info says what lies there
	OpList   Op = "list"   // Answer.Items are the objects below
	OpGet    Op = "get"    // Answer.Request brings the object
	OpPut    Op = "put"    // Answer.Request stores it, or Answer.Upload is one that takes parts
	OpPart   Op = "part"   // Answer.Request takes a part
	OpFinish Op = "finish" // puts the parts together
	OpAbort  Op = "abort"  // throws them away
	OpDelete Op = "delete" // removes the object, or all below
)

// Direction says whether an artifact is an input or an output of the task.
type Direction string

// The directions.
const (
	In  Direction = "in"
	Out Direction = "out"
)

// Ask is a question to the endpoint about one object of one of the attempt's own artifacts.
type Ask struct {
	Op        Op        `json:"op"`
	Direction Direction `json:"direction"`
	// Name is the artifact's, Index its place in the list of an input.
	Name  string `json:"name"`
	Index int    `json:"index,omitempty"`
	// URI is where the task's component wants an output to be; empty is where it was given a place. Only a place beside
	// that is the endpoint's business: elsewhere the component has put the bytes itself, and the answer is CodeElsewhere.
	URI string `json:"uri,omitempty"`
	// Key is the object's below the artifact, with slashes; empty is the artifact itself.
	Key string `json:"key,omitempty"`
	// Size in bytes of what is to be put, or of a part; -1 where it is not known.
	Size int64 `json:"size,omitempty"`
	// Upload, Part (from 1) and Parts are of uploads in parts.
	Upload string `json:"upload,omitempty"`
	Part   int    `json:"part,omitempty"`
	Parts  []Part `json:"parts,omitempty"`
}

// Part is one that was stored, as the store has called it.
type Part struct {
	Number int    `json:"number"`
	ETag   string `json:"etag"`
}

// Answer is what the endpoint says to an [Ask]; what is set depends on the operation.
type Answer struct {
	Request *Request `json:"request,omitempty"`
	Info    *Object  `json:"info,omitempty"`
	Items   []Object `json:"items,omitempty"`
	// Upload names an upload in parts of PartSize bytes each, but for the last; PartSize 0 leaves it to the task.
	Upload   string `json:"upload,omitempty"`
	PartSize int64  `json:"partSize,omitempty"`
}

// Request is what the task has to send, where to. A URL without a host is the endpoint's own and needs the token; any
// other needs nothing and is good for a short while.
type Request struct {
	Method  string            `json:"method"`
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers,omitempty"`
	// CA are the PEM certificates that the store is trusted by; empty is the system's.
	CA string `json:"ca,omitempty"`
}

// Object is one of a store.
type Object struct {
	// Key is relative to what was listed.
	Key string `json:"key,omitempty"`
	// Size in bytes; -1 where it is not known.
	Size int64 `json:"size"`
	// Tree says that there is no object but others below.
	Tree bool `json:"tree,omitempty"`
}

// Problem is the body of every answer but a success.
type Problem struct {
	// Error says what is wrong and what can be done about it.
	Error string `json:"error"`
	Code  Code   `json:"code,omitempty"`
}

// Code is what a program needs to know of a problem beyond the HTTP status.
type Code string

// The codes.
const (
	CodeAbsent    Code = "absent"    // nothing lies there
	CodeTree      Code = "tree"      // a tree was asked for as an object
	CodeReadOnly  Code = "readOnly"  // the store cannot be written
	CodeElsewhere Code = "elsewhere" // see [Ask.URI]
	// CodeUploadGone says that an upload in parts is not there any more; it was finished or thrown away.
	CodeUploadGone Code = "uploadGone"
)
