import Core
import CurlClient
import Hummingbird
import Logging
import LoopbackRelay
import LoopbackServer
import NIOCore
import ServiceLifecycle
import Synchronization
import Waku

@testable import NwakuRelay

/// Collects the messages that a relay delivers.
final class Inbox: Sendable {
    private let received = Mutex<[ReceivedMessage]>([])
    private let arrivals: AsyncStream<Void>
    private let arrival: AsyncStream<Void>.Continuation

    init() {
        (arrivals, arrival) = AsyncStream.makeStream(of: Void.self)
    }

    var messages: [ReceivedMessage] { received.withLock { $0 } }
    var payloads: Set<[UInt8]> { Set(messages.map(\.message.payload)) }

    func deliver(_ messages: [ReceivedMessage]) {
        received.withLock { $0 += messages }
        arrival.yield()
    }

    /// One caller at a time.
    func wait(until condition: @Sendable (Inbox) -> Bool) async {
        if condition(self) { return }
        for await _ in arrivals where condition(self) { return }
    }
}

/// Runs `run` concurrently with `body`, and cancels it afterwards.
func during<Result>(_ run: @escaping @Sendable () async -> Void, _ body: () async throws -> Result) async throws -> Result {
    let task = Task { await run() }
    do {
        let result = try await body()
        task.cancel()
        await task.value
        return result
    } catch {
        task.cancel()
        await task.value
        throw error
    }
}

/// Serves a loopback node on a local port while `body` runs.
func withLoopback<Result>(
    _ network: LoopbackNetwork, port: Int = 0, _ body: (_ port: Int) async throws -> Result
) async throws -> Result {
    let (ports, bound) = AsyncThrowingStream.makeStream(of: Int.self)
    return try await during {
        do {
            try await LoopbackServer(network: network, port: port).run { bound.yield($0) }
            bound.finish()
        } catch {
            bound.finish(throwing: error)
        }
    } _: {
        for try await port in ports { return try await body(port) }
        throw CancellationError()
    }
}

/// A node with scripted answers.
struct ScriptedNode: HTTPResponder {
    typealias Context = BasicRequestContext

    /// Maps `GET /path` and the query's parameters to a status and a body; nil answers `OK` to subscriptions, and polls with an empty list.
    let script: @Sendable (_ call: String, _ query: [String: String]) -> (Int, String)?

    func respond(to request: Request, context: Context) async throws -> Response {
        let call = "\(request.method.rawValue) \(request.uri.path)"
        var query: [String: String] = [:]
        for (name, value) in request.uri.queryParameters { query[String(name)] = String(value) }
        _ = try await request.body.collect(upTo: 16 << 20)
        let (status, body) = script(call, query) ?? (call.hasPrefix("GET /relay/v1/messages") ? (200, "[]") : (200, "OK"))
        return Response(status: .init(code: status), body: ResponseBody(byteBuffer: ByteBuffer(string: body)))
    }

    static func serve<Result>(
        _ script: @escaping @Sendable (_ call: String, _ query: [String: String]) -> (Int, String)?,
        _ body: (_ port: Int) async throws -> Result
    ) async throws -> Result {
        let (ports, bound) = AsyncStream.makeStream(of: Int.self)
        let application = Application(
            responder: ScriptedNode(script: script), configuration: ApplicationConfiguration(address: .hostname("127.0.0.1", port: 0)),
            onServerRunning: { channel in bound.yield(channel.localAddress?.port ?? 0) }, logger: quiet)
        let group = ServiceGroup(services: [application], logger: quiet)
        return try await during {
            let run = Task { try? await group.run() }
            await withTaskCancellationHandler {
                await run.value
            } onCancel: {
                Task { await group.triggerGracefulShutdown() }
            }
            bound.finish()
        } _: {
            for await port in ports { return try await body(port) }
            throw CancellationError()
        }
    }
}

let client = CurlClient()
let quiet = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
let topicA = ContentTopic(TopicTag(rawValue: 1))
let topicB = ContentTopic(TopicTag(rawValue: 2))
let topicC = ContentTopic(TopicTag(rawValue: 3))

func makeAPI(port: Int) throws -> NwakuAPI {
    NwakuAPI(address: try NodeAddress("http://127.0.0.1:\(port)"), client: client, minimumTimeout: .seconds(60))
}

/// With short intervals: it retries after at most 20 ms and does not limit store queries.
func makeRelay(
    port: Int, pollInterval: Duration = .milliseconds(20), catchUpTopics: [ContentTopic] = [], lastSeen: Timestamp? = nil,
    wants: (@Sendable (TopicTag) -> Bool)? = nil, logger: Logger = quiet, report: @escaping @Sendable (RelayEvent) -> Void = { _ in }
) throws -> NwakuRESTRelay {
    let api = try makeAPI(port: port)
    let short = ExponentialBackoff(initial: .milliseconds(10), maximum: .milliseconds(20))
    return try NwakuRESTRelay(
        configuration: NwakuRESTRelay.Configuration(
            address: api.address, pollInterval: pollInterval, catchUpTopics: catchUpTopics,
            lastSeen: lastSeen.map { [.statusDefault: $0] } ?? [:], wants: wants, report: report),
        api: api, logger: logger,
        timing: NwakuRESTRelay.Timing(
            nodeBackoff: short, storeBackoff: short, catchUpPeriod: .milliseconds(10), settling: .milliseconds(5),
            liveWaitLimit: .seconds(60))
    )
}

func message(_ number: Int, topic: ContentTopic = topicA, timestamp: Timestamp = .now()) -> WakuMessage {
    WakuMessage(payload: Array("\(number)".utf8), contentTopic: topic, timestamp: timestamp)
}

func payloads(_ numbers: some Sequence<Int>) -> Set<[UInt8]> {
    Set(numbers.map { Array("\($0)".utf8) })
}
