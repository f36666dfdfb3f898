import HTTPTypes
package import HummingbirdCore
package import NIOCore
import NIOHTTPTypes

extension Request {
    private static let expectation = HTTPField.Name("Expect")

    /// Whether the client sends the body after a response 100 (RFC 9110 section 10.1.1).
    private var expectsContinue: Bool {
        Self.expectation.flatMap { headers[$0] }?.lowercased() == "100-continue"
    }

    /// Sends 100 when the body is read for the first time, if the client waits for it. A request that is answered without its body gets none.
    package func continuing(on channel: any Channel) -> Request {
        guard expectsContinue else { return self }
        return Request(head: head, body: RequestBody(asyncSequence: AwaitedBody(body: body, channel: channel)))
    }
}

/// The body of a request whose client waits for a response 100.
private struct AwaitedBody: AsyncSequence, Sendable {
    typealias Element = ByteBuffer

    let body: RequestBody
    let channel: any Channel

    func makeAsyncIterator() -> AsyncIterator { AsyncIterator(base: body.makeAsyncIterator(), channel: channel) }

    struct AsyncIterator: AsyncIteratorProtocol {
        var base: RequestBody.AsyncIterator
        /// nil once 100 was sent.
        var channel: (any Channel)?

        mutating func next() async throws -> ByteBuffer? {
            if let channel {
                self.channel = nil
                try await channel.writeAndFlush(HTTPResponsePart.head(HTTPResponse(status: .continue)))
            }
            return try await base.next()
        }
    }
}
