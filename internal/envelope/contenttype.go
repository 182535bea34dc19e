package envelope

// contentTypes are the content types that are stored as a number: their index. The list belongs to Version: a new
// entry needs a new version, for an older reader could not tell what its number means.
var contentTypes = [...]string{
	1: "application/json",
	2: "application/octet-stream",
	3: "text/plain; charset=utf-8",
	4: "application/protobuf",
	5: "application/msgpack",
	6: "application/avro",
	7: "application/xml",
	8: "application/cloudevents+json",
}

// contentTypeCode returns the number of a well-known content type, or 0.
func contentTypeCode(s string) uint64 {
	if s == "" {
		return 0
	}
	for i, known := range contentTypes {
		if s == known {
			return uint64(i)
		}
	}
	return 0
}

// contentTypeText is a content type that was stored as text. The well-known ones are not made anew for every message.
func contentTypeText(data []byte) string {
	for _, known := range contentTypes {
		if string(data) == known {
			return known
		}
	}
	return string(data)
}
