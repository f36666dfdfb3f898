import Core
import CurlClient
import Synchronization
import TestSupport
import Testing
import WakuCrypto

@testable import Delivery

@Suite("Posting to push services over TLS")
struct WebPushClientTests {
    private static let receiver = WebPushReceiver()

    private func client(
        _ trust: CurlConfiguration.Trust, allowed: [String] = ["127.0.0.0/8"], timeout: Duration = .seconds(60),
        key: VAPIDKey = VAPIDKey(.generate()), formerKeys: [VAPIDKey] = []
    ) -> WebPushClient {
        let configuration = WebPushClient.configuration(trust: trust, allowed: allowed.compactMap { AddressRange($0) })
        return WebPushClient(
            client: CurlClient(configuration: configuration), key: key, formerKeys: formerKeys, contact: "mailto:operator@example.org",
            timeout: timeout)
    }

    private func message(
        _ endpoint: String, whole: [UInt8] = Array("{}".utf8), truncated: [UInt8] = Array("{\"truncated\":true}".utf8),
        collapseKey: [UInt8]? = nil, vapidKey: P256PublicKey? = nil
    ) throws -> WebPushMessage {
        let keys = try #require(Self.receiver.subscription(endpoint)).keys
        return WebPushMessage(
            id: "1", subscription: try #require(PushSubscription(endpoint: endpoint, keys: keys, vapidKey: vapidKey)),
            content: WebPushContent(whole: whole, truncated: truncated, urgency: .high),
            expires: .now() + .seconds(300), collapseKey: collapseKey)
    }

    @Test("A message arrives encrypted, with the headers of the standards, and the connection and token are used again")
    func headers() async throws {
        let service = try await PushServiceStandIn()
        let key = VAPIDKey(.generate())
        let client = client(.file(path: service.authority), key: key)
        for _ in 0..<2 {
            let reply = await client.post(try message(service.endpoint("/a?b=c")))
            #expect(reply.answer == .accepted && reply.status == 201)
        }
        let requests = service.requests
        try #require(requests.count == 2)
        let first = requests[0]
        #expect(first.path == "/a?b=c" && first.connection == requests[1].connection)
        #expect(first.headers["content-encoding"] == "aes128gcm" && first.headers["content-type"] == "application/octet-stream")
        #expect(first.headers["urgency"] == "high" && first.headers["topic"] == nil && first.headers["cookie"] == nil)
        #expect((290...300).contains(Int(try #require(first.headers["ttl"])) ?? 0))
        #expect(try Self.receiver.open(first.body) == Array("{}".utf8))
        #expect(first.body != requests[1].body)
        let authorization = try #require(first.headers["authorization"])
        #expect(authorization.hasPrefix("vapid t=") && authorization.hasSuffix(", k=\(key.publicKey)"))
        #expect(authorization == requests[1].headers["authorization"])
    }

    @Test("A message is signed by the key that its subscription names; without one, by the current key")
    func namedKeys() async throws {
        let service = try await PushServiceStandIn()
        let keys = (0..<3).map { _ in VAPIDKey(.generate()) }
        let client = client(.file(path: service.authority), key: keys[0], formerKeys: [keys[1], keys[2]])
        for named in [keys[2], keys[1], keys[0], nil] {
            let reply = await client.post(try message(service.endpoint("/"), vapidKey: named?.key.publicKey))
            #expect(reply.answer == .accepted)
        }
        let headers = service.requests.map { $0.headers["authorization"] ?? "" }
        try #require(headers.count == 4)
        #expect(zip(headers, [2, 1, 0, 0]).allSatisfy { $0.hasSuffix(", k=\(keys[$1].publicKey)") })
    }

    @Test("The time limit holds for all keys together that are tried in order")
    func slowRefusals() async throws {
        let service = try await PushServiceStandIn()
        let client = client(
            .file(path: service.authority), timeout: .milliseconds(500), formerKeys: (0..<3).map { _ in VAPIDKey(.generate()) })
        let reply = await client.post(try message(service.endpoint("/slow/0.4/403")))
        #expect(reply.answer == .unanswered || reply.answer == .keyRefused)
        // There is time for one answer.
        #expect(service.requests.count <= 2)
    }

    @Test("Messages that replace each other have the same topic, at one device and from each node with the key")
    func topics() async throws {
        let service = try await PushServiceStandIn()
        let key = VAPIDKey(.generate())
        let trust = CurlConfiguration.Trust.file(path: service.authority)
        let (node, other, stranger) = (client(trust, key: key), client(trust, key: key), client(trust))
        let posts: [(WebPushClient, path: String, chat: UInt8)] = [
            (node, "/a", 1), (other, "/a", 1), (node, "/a", 2), (node, "/b", 1), (stranger, "/a", 1),
        ]
        for (sender, path, chat) in posts {
            let reply = await sender.post(try message(service.endpoint(path), collapseKey: [chat]))
            #expect(reply.answer == .accepted)
        }
        let topics = try service.requests.map { try #require($0.headers["topic"]) }
        try #require(topics.count == 5)
        #expect(topics[0] == topics[1] && Set(topics).count == 4)
        // RFC 8030 allows 32 characters of this alphabet.
        #expect(topics.allSatisfy { $0.count == 32 && Base64URL.decode($0)?.count == 24 })
    }

    @Test("A message that is too long goes out without its data")
    func truncated() async throws {
        let service = try await PushServiceStandIn()
        let reply = await client(.file(path: service.authority)).post(
            try message(service.endpoint("/"), whole: [UInt8](repeating: 0x20, count: 4000)))
        #expect(reply.answer == .accepted)
        #expect(try Self.receiver.open(try #require(service.requests.first).body) == Array("{\"truncated\":true}".utf8))
    }

    /// Mozilla's for a device behind Firebase, which takes 4,096 bytes of JSON with the body in base64.
    @Test("A message that is too large for its push service goes out without its data, once")
    func tooLargeForTheService() async throws {
        let service = try await PushServiceStandIn()
        let client = client(.file(path: service.authority))
        let long = [UInt8](repeating: 0x20, count: 3000)
        let reply = await client.post(try message(service.endpoint("/limit/3015"), whole: long))
        #expect(reply.answer == .accepted && reply.postCount == 2)
        #expect(try service.requests.map { try Self.receiver.open($0.body) } == [long, Array("{\"truncated\":true}".utf8)])
        // One that refuses that, too, is not asked a third time; a message whose data does not make it larger is posted once.
        for (path, whole, count) in [("/limit/100", long, 2), ("/limit/1", Array("{}".utf8), 1)] {
            let refusal = await client.post(try message(service.endpoint(path), whole: whole))
            #expect(refusal.answer == .refused && refusal.postCount == count)
            #expect(service.requests.count { $0.path == path } == count)
        }
    }

    @Test("A message that is too long even so is given up without a post, and is no answer of the push service")
    func tooLong() async throws {
        let service = try await PushServiceStandIn()
        let long = [UInt8](repeating: 0x20, count: 4000)
        let reply = await client(.file(path: service.authority)).post(try message(service.endpoint("/"), whole: long, truncated: long))
        #expect(reply.answer == .tooLong && service.requests.isEmpty)
        #expect(reply.answer.result(id: "1", status: nil, reason: nil).outcome == .unpostable)
    }

    @Test("Each status has its meaning, and redirects are not followed")
    func statuses() async throws {
        let service = try await PushServiceStandIn()
        let client = client(.file(path: service.authority))
        let answers: [(String, WebPushAnswer)] = [
            ("/status/200", .accepted), ("/status/201", .accepted), ("/status/202", .accepted), ("/status/404", .gone),
            ("/status/410", .gone),
            ("/status/400", .refused), ("/status/413", .refused), ("/status/405", .refused), ("/status/301", .refused),
            ("/redirect", .refused),
            ("/status/401", .keyRefused), ("/status/403", .keyRefused), ("/status/429", .later(retryAfter: nil)),
            ("/status/429/120", .later(retryAfter: .seconds(120))), ("/status/503/99999", .later(retryAfter: .seconds(99_999))),
            ("/status/500", .later(retryAfter: nil)), ("/status/503/soon", .later(retryAfter: nil)),
            ("/status/406/60", .later(retryAfter: .seconds(60))),
        ]
        for (path, answer) in answers {
            let reply = await client.post(try message(service.endpoint(path)))
            #expect(reply.answer == answer, "\(path)")
        }
        #expect(service.requests.map(\.path) == answers.map(\.0))
    }

    @Test(
        "Refusals of the key or of the notification count against a push service, nothing else",
        arguments: [
            (.accepted, false), (.gone, false), (.keyRefused, true), (.later(retryAfter: nil), false), (.unanswered, false),
            (.refused, true), (.addressBusy, false), (.tooLong, false),
        ] as [(WebPushAnswer, Bool)])
    func refusals(answer: WebPushAnswer, isRefusal: Bool) {
        #expect(answer.isRefusal == isRefusal)
    }

    @Test("A push service can ask for a pause of an hour at most", arguments: [(120, 120), (99_999, 3600)])
    func longPauses(seconds: Int, expected: Int) {
        let result = WebPushAnswer.later(retryAfter: .seconds(seconds)).result(id: "a", status: 503, reason: nil)
        #expect(result.outcome == .unclear(retryAfter: .seconds(expected)))
    }

    @Test("The status decides about an answer beyond 16 KiB or without an end; none at all ends the post")
    func longAnswers() async throws {
        let service = try await PushServiceStandIn()
        let patient = client(.file(path: service.authority))
        for (path, answer) in [("/huge", .accepted), ("/huge/410", .gone), ("/huge/400", .refused)] as [(String, WebPushAnswer)] {
            #expect(await patient.post(try message(service.endpoint(path))).answer == answer)
        }
        let impatient = client(.file(path: service.authority), timeout: .seconds(3))
        for (path, answer) in [("/endless", .accepted), ("/silent", .unanswered)] as [(String, WebPushAnswer)] {
            #expect(await impatient.post(try message(service.endpoint(path))).answer == answer)
        }
    }

    @Test("Loopback is not connected to unless the operator allows it, under any name or notation")
    func refusedAddresses() async throws {
        let service = try await PushServiceStandIn()
        for allowed in [[], ["10.0.0.0/8", "fd00::/8"]] {
            let client = client(.file(path: service.authority), allowed: allowed)
            for host in ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]"] {
                let reply = await client.post(try message(service.endpoint("/", host: host)))
                #expect(reply.answer == .unanswered && reply.status == nil, "\(host)")
            }
        }
        #expect(service.requests.isEmpty)
        #expect(
            await client(.file(path: service.authority)).post(try message(service.endpoint("/", host: "localhost"))).answer == .accepted)
    }

    @Test("The client refuses loopback in notations that no subscription may have, and plain HTTP")
    func refusedNotations() async throws {
        let service = try await PushServiceStandIn()
        let curl = CurlClient(configuration: WebPushClient.configuration(trust: .file(path: service.authority), allowed: []))
        for host in ["2130706433", "0x7f000001", "0177.0.0.1", "127.1", "127.0.0.1", "[::1]", "[::127.0.0.1]", "0", "0.0.0.0"] {
            await #expect(throws: HTTPError.self, "\(host)") {
                try await curl.send(HTTPRequest(method: "POST", url: service.endpoint("/", host: host), body: [], timeout: .seconds(60)))
            }
        }
        await #expect(throws: HTTPError.self) {
            try await curl.send(HTTPRequest(method: "POST", url: "http://127.0.0.1:\(service.port)/", body: [], timeout: .seconds(60)))
        }
        #expect(service.requests.isEmpty)
    }

    /// 127.0.0.1 stands for a public address, 127.0.0.2 for a private one; nothing else differs for the check.
    @Test("A name whose address changes is connected to at allowed addresses only, whichever came first")
    func changingAddresses() async throws {
        let service = try await PushServiceStandIn()
        let answer = Mutex("127.0.0.1")
        var configuration = WebPushClient.configuration(
            trust: .file(path: service.authority), allowed: ["127.0.0.1"].compactMap { AddressRange($0) })
        let port = service.port
        configuration.resolve = { ["localhost:\(port):" + answer.withLock { $0 }] }
        let curl = CurlClient(configuration: configuration)
        func post(_ addresses: String) async -> (status: Int?, failure: HTTPError.Code?, address: IPAddress?) {
            answer.withLock { $0 = addresses }
            do throws(HTTPError) {
                // No connection is kept, so that each post uses the present answer.
                let request = HTTPRequest(
                    method: "POST", url: service.endpoint("/", host: "localhost"), headers: [("Connection", "close")], body: [],
                    timeout: .seconds(60))
                let response = try await curl.send(request)
                return (response.status, nil, response.address)
            } catch {
                return (nil, error.code, nil)
            }
        }
        let expected: [(addresses: String, status: Int?)] = [
            ("127.0.0.1", 201), ("127.0.0.2", nil), ("127.0.0.1", 201), ("10.0.0.1", nil), ("169.254.169.254", nil), ("::1", nil),
            ("127.0.0.2,127.0.0.1", 201),
        ]
        for (addresses, status) in expected {
            let result = await post(addresses)
            #expect(result.status == status && result.failure == (status == nil ? .refusedAddress : nil), "\(addresses): \(result)")
            if status != nil { #expect(result.address == IPAddress("127.0.0.1")) }
        }
        #expect(service.requests.count == 3)
    }

    @Test("Names of one address share its new connections until they have answered, and are tried again later")
    func manyNames() async throws {
        let service = try await PushServiceStandIn()
        var configuration = WebPushClient.configuration(
            trust: .file(path: service.authority), allowed: ["127.0.0.0/8"].compactMap { AddressRange($0) })
        let port = service.port
        let names = (0..<150).map { "name\($0).example" }
        configuration.resolve = { names.map { "\($0):\(port):127.0.0.1" } + ["localhost:\(port):127.0.0.1"] }
        let client = WebPushClient(
            client: CurlClient(configuration: configuration), key: VAPIDKey(.generate()), contact: "mailto:operator@example.org")
        #expect(await client.post(try message(service.endpoint("/", host: "localhost"))).answer == .accepted)
        // The certificate is not theirs. All at once: on a slow machine the allowance would grow while one waits for another.
        let messages = try names.map { try message(service.endpoint("/", host: $0)) }
        let answers = await withTaskGroup { group in
            for message in messages { group.addTask { await client.post(message).answer } }
            return await group.reduce(into: [WebPushAnswer]()) { $0.append($1) }
        }
        #expect(answers.contains(.unanswered) && answers.contains(.addressBusy))
        #expect(await client.post(try message(service.endpoint("/", host: "localhost"))).answer == .accepted)
        #expect(service.requests.count == 2)
    }

    @Test("Certificates are verified")
    func certificates() async throws {
        let service = try await PushServiceStandIn()
        #expect(await client(.system).post(try message(service.endpoint("/"))).answer == .unanswered)
        #expect(service.requests.isEmpty)
    }

    @Test("No reason names the push service")
    func reasons() async throws {
        let service = try await PushServiceStandIn()
        for path in ["/status/400", "/status/410"] {
            let reply = await client(.file(path: service.authority)).post(try message(service.endpoint(path)))
            #expect(reply.reason?.contains("127.0.0.1") == false)
        }
        let reply = await client(.system).post(try message(service.endpoint("/")))
        #expect(reply.reason?.contains("127.0.0.1") == false)
    }
}
