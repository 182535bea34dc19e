package envelope

import (
	"bytes"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
)

// protoTables are the tables of this package by their names in ferry.proto.
var protoTables = map[string]table{
	"Message": messageFields, "RetryPolicy": retryFields, "DeadLetter": deadLetterFields,
	"Origin": originFields, "Failure": failureFields, "History": historyFields,
}

// protoLine is one field of ferry.proto.
type protoLine struct {
	label, typ, name string
	number           int
}

var (
	messageLine = regexp.MustCompile(`^message (\w+) \{$`)
	fieldLine   = regexp.MustCompile(`^(optional |repeated )?([\w<>, ]+) (\w+) = (\d+);$`)
)

// parseProto reads the small part of the language that ferry.proto uses, and fails on everything else.
func parseProto(t *testing.T) map[string][]protoLine {
	t.Helper()
	messages := make(map[string][]protoLine)
	current := ""
	for i, line := range strings.Split(string(must[[]byte](t)(os.ReadFile("ferry.proto"))), "\n") {
		line, _, _ = strings.Cut(line, "//")
		line = strings.TrimSpace(line)
		if m := messageLine.FindStringSubmatch(line); m != nil && current == "" {
			current = m[1]
		} else if f := fieldLine.FindStringSubmatch(line); f != nil && current != "" {
			n, _ := strconv.Atoi(f[4])
			messages[current] = append(messages[current], protoLine{strings.TrimSpace(f[1]), f[2], f[3], n})
		} else if line == "}" && current != "" {
			current = ""
		} else if line != "" && line != `syntax = "proto3";` && line != "package ferry.v1;" {
			t.Fatalf("ferry.proto:%d: cannot read %q", i+1, line)
		}
	}
	return messages
}

func TestTablesAgreeWithProto(t *testing.T) {
	t.Parallel()
	messages := parseProto(t)
	if len(messages) != len(protoTables) {
		t.Errorf("ferry.proto has %d messages, this package %d tables", len(messages), len(protoTables))
	}
	for name, table := range protoTables {
		lines := messages[name]
		if len(lines) != len(table) {
			t.Errorf("%s has %d fields in ferry.proto, %d in its table", name, len(lines), len(table))
			continue
		}
		for i, l := range lines {
			f := table[i]
			typ, label := kinds[f.kind].proto, ""
			switch {
			case f.kind == kindMessage:
				typ = l.typ // any message; TestProtobufLibraryAgreesOnGoldens follows it
				if protoTables[typ] == nil {
					t.Errorf("%s.%s has the type %s, which has no table", name, l.name, typ)
				}
				if l.typ == "Failure" {
					label = "repeated"
				}
			case f.kind == kindInt64s:
				label = "repeated"
			case f.kind == kindSfixed64:
				label = "optional"
			}
			if want := (protoLine{label, typ, f.name, i + 1}); l != want {
				t.Errorf("%s: ferry.proto says %+v, the table %+v", name, l, want)
			}
		}
	}
}

// protoFile is ferry.proto as the protobuf library knows it.
func protoFile(t *testing.T) protoreflect.FileDescriptor {
	t.Helper()
	file := &descriptorpb.FileDescriptorProto{
		Name: proto.String("ferry.proto"), Package: proto.String("ferry.v1"), Syntax: proto.String("proto3"),
	}
	for name, lines := range parseProto(t) {
		msg := &descriptorpb.DescriptorProto{Name: proto.String(name)}
		for _, l := range lines {
			addField(msg, l)
		}
		file.MessageType = append(file.MessageType, msg)
	}
	return must[protoreflect.FileDescriptor](t)(protodesc.NewFile(file, nil))
}

func addField(msg *descriptorpb.DescriptorProto, l protoLine) {
	f := &descriptorpb.FieldDescriptorProto{Name: proto.String(l.name), Number: proto.Int32(int32(l.number)),
		Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum()}
	switch l.label {
	case "repeated":
		f.Label = descriptorpb.FieldDescriptorProto_LABEL_REPEATED.Enum()
	case "optional":
		f.Proto3Optional = proto.Bool(true)
		f.OneofIndex = proto.Int32(int32(len(msg.OneofDecl)))
		msg.OneofDecl = append(msg.OneofDecl, &descriptorpb.OneofDescriptorProto{Name: proto.String("_" + l.name)})
	}
	scalar, known := descriptorpb.FieldDescriptorProto_Type_value["TYPE_"+strings.ToUpper(l.typ)]
	switch {
	case known && l.typ == strings.ToLower(l.typ): // not our message called Message
		f.Type = descriptorpb.FieldDescriptorProto_Type(scalar).Enum()
	case l.typ == "map<string, bytes>":
		entry := &descriptorpb.DescriptorProto{Name: proto.String("HeadersEntry"),
			Options: &descriptorpb.MessageOptions{MapEntry: proto.Bool(true)}}
		addField(entry, protoLine{typ: "string", name: "key", number: 1})
		addField(entry, protoLine{typ: "bytes", name: "value", number: 2})
		msg.NestedType = append(msg.NestedType, entry)
		f.Label = descriptorpb.FieldDescriptorProto_LABEL_REPEATED.Enum()
		f.Type = descriptorpb.FieldDescriptorProto_TYPE_MESSAGE.Enum()
		f.TypeName = proto.String(".ferry.v1." + msg.GetName() + ".HeadersEntry")
	default:
		f.Type = descriptorpb.FieldDescriptorProto_TYPE_MESSAGE.Enum()
		f.TypeName = proto.String(".ferry.v1." + l.typ)
	}
	msg.Field = append(msg.Field, f)
}

// The protobuf library, which knows ferry.proto only, must understand what we wrote, whole, and write the same.
func TestProtobufLibraryAgreesOnGoldens(t *testing.T) {
	t.Parallel()
	file := protoFile(t)
	v := readVectors(t)
	goldens := make(map[string][]byte)
	for _, m := range v.Messages {
		goldens["Message "+m.Name] = m.envelope(t)
	}
	for _, dl := range v.DeadLetters {
		goldens["DeadLetter "+dl.Name] = dl.envelope(t)
	}
	goldens["History"] = AppendHistory(nil, dead().History...)
	for name, data := range goldens {
		typ, _, _ := strings.Cut(name, " ")
		m := dynamicpb.NewMessage(file.Messages().ByName(protoreflect.Name(typ)))
		if err := proto.Unmarshal(data, m); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if u := unknownFields(m); len(u) > 0 {
			t.Errorf("%s: ferry.proto does not describe the fields %x", name, u)
		}
		if again := rewrite(t, m); !bytes.Equal(again, data) {
			t.Errorf("%s: the protobuf library writes\n%x, we\n%x", name, again, data)
		}
	}
}

// rewrite marshals m as docs/envelope.md tells other languages to: without its checksum, which is then appended.
func rewrite(t *testing.T, m *dynamicpb.Message) []byte {
	t.Helper()
	crc := m.Descriptor().Fields().ByNumber(numCRC)
	if crc == nil {
		return must[[]byte](t)(proto.MarshalOptions{Deterministic: true}.Marshal(m))
	}
	inner := m.Descriptor().Fields().ByName("message")
	var nested []byte
	if inner != nil && m.Has(inner) {
		sub, ok := m.Get(inner).Message().Interface().(*dynamicpb.Message)
		if !ok {
			t.Fatalf("%s.message is not a message", m.Descriptor().Name())
		}
		nested = protowire.AppendBytes(protowire.AppendTag(nil, inner.Number(), protowire.BytesType), rewrite(t, sub))
		m.Clear(inner)
	}
	m.Clear(crc)
	rest := must[[]byte](t)(proto.MarshalOptions{Deterministic: true}.Marshal(m))
	version := len(appendVersion(nil))
	return seal(append(append(bytes.Clone(rest[:version]), nested...), rest[version:]...), 0)
}

func unknownFields(m protoreflect.Message) []byte {
	unknown := bytes.Clone(m.GetUnknown())
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.Message() == nil || f.IsMap():
		case f.IsList():
			for i := range v.List().Len() {
				unknown = append(unknown, unknownFields(v.List().Get(i).Message())...)
			}
		default:
			unknown = append(unknown, unknownFields(v.Message())...)
		}
		return true
	})
	return unknown
}

// Each name of a form must mean one field, or reading would mix them up.
func TestFormNamesAreDistinct(t *testing.T) {
	t.Parallel()
	for _, form := range []Form{Stream, Kafka} {
		seen := make(map[string]string)
		for i, f := range messageFields {
			name := form.name(i + 1)
			// the short forms of the next row
			if name == "" || name == kafkaHeader || f.name == "id_uuid" || f.name == "content_type_code" {
				continue
			}
			if seen[name] != "" {
				t.Errorf("%s is both %s and %s", name, seen[name], f.name)
			}
			seen[name] = f.name
			if form == Kafka && !strings.HasPrefix(name, kafkaPrefix) {
				t.Errorf("header %s of %s does not begin with %s", name, f.name, kafkaPrefix)
			}
		}
	}
}
