import Foundation
import NIOCore
import NIOPosix
import TestSupport
import Testing
import WakuCrypto

@testable import WakuP2P

/// A DNS server on loopback that answers from a zone while this object exists.
final class DNSServer: Sendable {
    private let channel: any Channel
    private let log = Log<String>()

    /// - Parameter change: Maps each answer to the datagrams sent instead.
    init(_ zone: Zone, change: @escaping @Sendable ([UInt8]) -> [[UInt8]] = { [$0] }) async throws {
        let log = log
        let known = zone.reduce(into: Zone()) { $0[$1.key.lowercased()] = $1.value }
        channel = try await DatagramBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(Answering(zone: known, log: log, change: change))
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
    }

    deinit { channel.close(promise: nil) }

    var port: Int { channel.localAddress?.port ?? 0 }
    var client: DNSClient {
        var client = DNSClient(servers: [channel.localAddress].compactMap { $0 })
        client.timeout = .seconds(10)
        return client
    }
    /// The queried names, in order.
    var asked: [String] { log.all }

    private final class Answering: ChannelInboundHandler {
        typealias InboundIn = AddressedEnvelope<ByteBuffer>
        private let zone: Zone
        private let log: Log<String>
        private let change: @Sendable ([UInt8]) -> [[UInt8]]

        init(zone: Zone, log: Log<String>, change: @escaping @Sendable ([UInt8]) -> [[UInt8]]) {
            (self.zone, self.log, self.change) = (zone, log, change)
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            let envelope = unwrapInboundIn(data)
            let question = Array(envelope.data.readableBytesView)
            let name = DNSServer.name(in: question)
            log.add([name])
            for answer in change(DNSServer.answer(to: question, zone[name])) {
                context.writeAndFlush(
                    NIOAny(AddressedEnvelope(remoteAddress: envelope.remoteAddress, data: ByteBuffer(bytes: answer))), promise: nil)
            }
        }
    }

    static func name(in question: [UInt8]) -> String {
        var labels: [String] = []
        var rest = question.dropFirst(12)
        while let count = rest.popFirst(), count > 0 {
            labels.append(String(decoding: rest.prefix(Int(count)), as: UTF8.self))
            rest = rest.dropFirst(Int(count))
        }
        return labels.joined(separator: ".").lowercased()
    }

    /// The record's name is a pointer to the question's name; texts are split into parts of 255 bytes.
    static func answer(to question: [UInt8], _ texts: [String]?) -> [UInt8] {
        let name = name(in: question)
        let end = 12 + name.utf8.count + 2 + 4
        let responseCode: UInt8 = texts == nil ? 0x83 : 0x80
        var bytes: [UInt8] = [question[0], question[1], 0x81, responseCode, 0, 1, 0, UInt8(texts?.count ?? 0), 0, 0, 0, 0]
        bytes += question[12..<end]
        for text in texts ?? [] {
            var content = ArraySlice(text.utf8)
            var parts: [UInt8] = []
            repeat {
                let part = content.prefix(255)
                parts.append(UInt8(part.count))
                parts += part
                content = content.dropFirst(255)
            } while !content.isEmpty
            let head: [UInt8] = [0xC0, 12, 0, 16, 0, 1, 0, 0, 0, 60, UInt8(parts.count >> 8), UInt8(parts.count & 255)]
            bytes += head + parts
        }
        return bytes
    }
}

@Suite("TXT records", .timeLimit(.minutes(5)))
struct DNSTests {
    private static let long = String(repeating: "enr:abcdefghij", count: 60)

    @Test("A query, byte by byte")
    func question() {
        let bytes = DNSMessage.question(for: "ab.c", id: 0x1234)
        #expect(bytes.map { hexString($0) } == "123401000001000000000001026162016300001000010000291000000000000000")
        for name in ["", ".", "a..b", String(repeating: "a", count: 64), Array(repeating: "abcdefg", count: 32).joined(separator: ".")] {
            #expect(DNSMessage.question(for: name, id: 1) == nil)
        }
    }

    private func answer(_ texts: [String]?) throws -> [UInt8] {
        DNSServer.answer(to: try #require(DNSMessage.question(for: "List.example", id: 7)), texts)
    }

    @Test("Responses with one, several, multi-part and no texts, and with a CNAME")
    func answers() throws {
        for texts in [["one"], ["one", "two"], [Self.long], []] {
            #expect(try DNSMessage.texts(in: try answer(texts), to: "List.example", id: 7) == texts)
        }
        // An alias first: type 5, with a name that ends in a pointer.
        var bytes = Array(try answer([])[...])
        bytes[7] = 2
        bytes += [0xC0, 12, 0, 5, 0, 1, 0, 0, 0, 60, 0, 4, 1, 0x7A, 0xC0, 17]
        bytes += [1, 0x7A, 0xC0, 17, 0, 16, 0, 1, 0, 0, 0, 60, 0, 3, 2, 0x68, 0x69]
        #expect(try DNSMessage.texts(in: bytes, to: "list.example", id: 7) == ["hi"])
    }

    @Test("Responses to other queries are distinguished from malformed ones")
    func refusals() throws {
        let good = try answer(["one"])
        #expect(throws: DNSMessage.Failure.unrelated) { try DNSMessage.texts(in: good, to: "list.example", id: 8) }
        #expect(throws: DNSMessage.Failure.unrelated) { try DNSMessage.texts(in: good, to: "other.example", id: 7) }
        #expect(throws: DNSMessage.Failure.unrelated) {
            try DNSMessage.texts(in: try #require(DNSMessage.question(for: "list.example", id: 7)), to: "list.example", id: 7)
        }
        #expect(throws: DNSMessage.Failure.refused(code: 3)) { try DNSMessage.texts(in: try answer(nil), to: "list.example", id: 7) }
        var truncated = good
        truncated[2] |= 2
        #expect(throws: DNSMessage.Failure.truncated) { try DNSMessage.texts(in: truncated, to: "list.example", id: 7) }
        var looping = good
        // The record's name points to itself.
        looping[good.count - 16 + 1] = UInt8(good.count - 16)
        #expect(throws: DNSMessage.Failure.malformed) { try DNSMessage.texts(in: looping, to: "list.example", id: 7) }
        for count in 0..<good.count {
            #expect(throws: DNSMessage.Failure.self) { try DNSMessage.texts(in: Array(good[..<count]), to: "list.example", id: 7) }
        }
    }

    @Test("System DNS servers")
    func configuration() {
        let text =
            "# nameserver 1.1.1.1\nsearch x\nnameserver 192.0.2.1\nnameserver\t2001:db8::1 \nnameserver nonsense\nnameserver 192.0.2.2\nnameserver 192.0.2.3"
        #expect(DNSClient.servers(in: text).map(\.ipAddress) == ["192.0.2.1", "2001:db8::1", "192.0.2.2"])
        #expect(DNSClient.servers(in: text).allSatisfy { $0.port == 53 })
    }

    @Test func changedSystemServersAreUsed() throws {
        let folder = try TemporaryFolder()
        let file = folder.path + "/resolv.conf"
        var client = DNSClient.system(file: file)
        client.timeout = .seconds(7)
        #expect(client.servers.isEmpty)
        try Data("nameserver 192.0.2.1".utf8).write(to: URL(filePath: file))
        #expect(client.updated().servers.map(\.ipAddress) == ["192.0.2.1"])
        #expect(client.updated().timeout == .seconds(7))
        let chosen = try #require(DNSClient(ipAddress: "192.0.2.9", port: 5353))
        #expect(chosen.updated().servers == chosen.servers)
    }

    @Test("Forged responses, silent servers and unreachable servers")
    func server() async throws {
        let zone: Zone = ["list.example": [Self.long, "two"]]
        let server = try await DNSServer(zone)
        #expect(await server.client.texts(of: "list.example") == [Self.long, "two"])
        #expect(await server.client.texts(of: "none.example").isEmpty)
        #expect(server.asked == ["list.example", "none.example"])
        let liar = try await DNSServer(zone) { answer in
            var other = answer
            other[0] ^= 1
            return [other, [], Array(answer[..<5]), answer]
        }
        #expect(await liar.client.texts(of: "list.example") == [Self.long, "two"])
        let silent = try await DNSServer(zone) { _ in [] }
        var both = silent.client
        // The silent server costs one timeout; the other one must respond within it on a slow machine.
        both.timeout = .seconds(3)
        let well = try await DNSServer(zone)
        both.servers += well.client.servers
        #expect(await both.texts(of: "list.example") == [Self.long, "two"])
        #expect(silent.asked.first == "list.example")
        let port = try ReservedPort(.udp)
        let unreachable = DNSClient(servers: [try SocketAddress(ipAddress: "127.0.0.1", port: Int(port.number))])
        #expect(await unreachable.texts(of: "list.example").isEmpty)
        withExtendedLifetime(port) {}
    }

    /// What an operator does about them differs.
    @Test func failuresAreToldApart() async throws {
        let zone: Zone = ["list.example": ["one"]]
        let truncated = try await DNSServer(zone) { answer in [Self.changed(answer, at: 2) { $0 | 0x02 }] }
        let refused = try await DNSServer(zone) { answer in [Self.changed(answer, at: 3) { $0 & 0xF0 | 5 }] }
        let malformed = try await DNSServer(zone) { answer in [Array(answer.dropLast(2))] }
        let silent = try await DNSServer(zone) { _ in [] }
        var waiting = silent.client
        waiting.timeout = .milliseconds(50)
        let failures: [(DNSClient, DNSClient.Failure)] = [
            (truncated.client, .truncated), (refused.client, .refused(code: 5)), (malformed.client, .malformed), (waiting, .timedOut),
            (DNSClient(servers: []), .noServer),
        ]
        for (client, failure) in failures {
            await #expect(throws: failure) { try await client.lookUp("list.example") }
        }
        // Each server is asked twice.
        #expect(refused.asked == ["list.example", "list.example"])
    }

    private static func changed(_ bytes: [UInt8], at index: Int, _ change: (UInt8) -> UInt8) -> [UInt8] {
        var bytes = bytes
        bytes[index] = change(bytes[index])
        return bytes
    }

    @Test func theProblemNamesItsRemedy() {
        #expect(NodeListProblem.text(dns: .truncated, list: [.malformed]).contains("set --dns to one that passes them over UDP"))
        #expect(NodeListProblem.text(dns: .timedOut, list: [.malformed]).hasPrefix("the DNS server does not answer"))
        #expect(NodeListProblem.text(dns: .refused(code: 2), list: [.malformed]).contains("error 2"))
        #expect(NodeListProblem.text(dns: nil, list: [.badSignature, .malformed]).contains("not signed"))
        #expect(NodeListProblem.text(dns: nil, list: [.malformed]).hasPrefix("there is no list"))
    }
}
