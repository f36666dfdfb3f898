"""An OpenTelemetry collector on loopback: takes OTLP/HTTP in protobuf, decoded by opentelemetry-proto. The first argument is not used.

Prints "port N"; for each request "export PATH HEX-OF-BODY", and "span JSON" for each of its spans. /refuse/… answers 503.
"""
import http.server
import json

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest, ExportTraceServiceResponse


def value(any_value):
    return str(getattr(any_value, any_value.WhichOneof("value")))


def describe(span, resource):
    return {
        "name": span.name, "kind": span.kind, "trace": span.trace_id.hex(), "span": span.span_id.hex(),
        "parent": span.parent_span_id.hex(), "start": span.start_time_unix_nano, "end": span.end_time_unix_nano,
        "attributes": {pair.key: value(pair.value) for pair in span.attributes}, "events": len(span.events),
        "links": [link.trace_id.hex() + link.span_id.hex() for link in span.links],
        "status": span.status.code, "message": span.status.message,
        "resource": {pair.key: value(pair.value) for pair in resource.attributes},
    }


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        refuses = self.path.startswith("/refuse/")
        print("export", self.path, body.hex(), flush=True)
        assert self.headers["Content-Type"] == "application/x-protobuf"
        request = ExportTraceServiceRequest.FromString(body)
        size = request.ByteSize()
        request.DiscardUnknownFields()
        assert request.ByteSize() == size, "unknown fields"
        for resource_spans in [] if refuses else request.resource_spans:
            for scope_spans in resource_spans.scope_spans:
                for span in scope_spans.spans:
                    line = json.dumps(describe(span, resource_spans.resource), separators=(",", ":"))
                    print("span", line, flush=True)
        answer = ExportTraceServiceResponse().SerializeToString()
        self.send_response(503 if refuses else 200)
        self.send_header("Content-Type", "application/x-protobuf")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print("port", server.server_address[1], flush=True)
server.serve_forever()
