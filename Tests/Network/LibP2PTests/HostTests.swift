import class Foundation.Thread
import Core
import Glibc
import NIOCore
import NIOPosix
import Synchronization
import TestSupport
import Testing
import WakuCrypto

@testable import LibP2P

@Suite struct HostTests {
    private func echo(_ host: Host, _ id: String = "/echo/1.0.0", streamsPerPeer: Int = 16) {
        host.serve(id, streamsPerPeer: streamsPerPeer) { stream in
            while let bytes = try await stream.read() { try await stream.write(bytes) }
        }
    }

    @Test func endedConnectionsAndStreamsAreFreed() async throws {
        weak var host: Host?
        weak var dialed: Connection?
        weak var taken: Connection?
        try await withTwoHosts { dialer, listener in
            _ = try await dialer.ping(listener.peerID)
            try await eventually { listener.connection(to: dialer.peerID) != nil }
            host = listener
            dialed = dialer.connection(to: listener.peerID)
            taken = listener.connection(to: dialer.peerID)
            #expect(dialed != nil && taken != nil)
        }
        try await eventually { dialed == nil && taken == nil && host == nil }
    }

    @Test func bothPingAndIdentify() async throws {
        try await withTwoHosts { dialer, listener in
            echo(listener)
            #expect(try await dialer.ping(listener.peerID) > .zero)
            try await eventually { listener.peers.first?.info != nil && dialer.peers.first?.info != nil }
            #expect(try await listener.ping(dialer.peerID) > .zero)
            let known = try #require(dialer.peers.first)
            #expect(known.connection.peer == listener.peerID && !known.connection.isInbound)
            #expect(known.info?.publicKey == listener.key.publicKey)
            #expect(known.info?.agentVersion == "waku-push")
            #expect(known.info?.listenAddresses == listener.listenAddresses.map(\.withoutPeerID))
            #expect(known.info?.observedAddress == listener.peers.first?.connection.remoteAddress?.withoutPeerID)
            try await eventually { dialer.peers.first?.info?.protocols.contains("/echo/1.0.0") ?? false }
            #expect(known.connection.bytesSent > 0 && known.connection.bytesReceived > 0)
        }
    }

    @Test func identifyIsRepeatedUntilADialedPeerAnswers() async throws {
        let listener = try await ListeningHost()
        let info = listener.host.ownInfo
        let requestCount = Mutex(0)
        listener.host.serve(Identify.id) { stream in
            let number = requestCount.withLock { count in
                count += 1
                return count
            }
            guard number > 2 else { throw ConnectionError.refused }
            try await Identify.send(info, on: stream)
        }
        var configuration = HostConfiguration()
        configuration.identifyPause = .milliseconds(10)
        let dialer = Host(key: .generate(), configuration: configuration)
        try await dialer.connect(to: listener.address)
        try await eventually { dialer.peers.first?.info?.protocols == info.protocols }
        #expect(requestCount.withLock { $0 } == 3)
        for host in [dialer, listener.host] { await host.close() }
    }

    @Test func laterServicesAreAnnouncedByIdentifyPush() async throws {
        try await withTwoHosts { dialer, listener in
            try await eventually { listener.peers.first?.info != nil && dialer.peers.first?.info != nil }
            let events = dialer.events()
            echo(listener, "/later/1.0.0")
            let info = await events.first { event -> PeerInfo? in
                guard case .identified(listener.peerID, let info) = event, info.protocols.contains("/later/1.0.0") else { return nil }
                return info
            }
            #expect(info != nil)
        }
    }

    /// Larger than a window and the queues, so that all of them fill and empty.
    @Test func largeDataIsTransferredInBothDirections() async throws {
        try await withTwoHosts { dialer, listener in
            echo(listener)
            let stream = try await dialer.openStream(to: listener.peerID, ["/none/1.0.0", "/echo/1.0.0"])
            #expect(stream.protocolID == "/echo/1.0.0" && !stream.isInbound)
            let data = randomBytes(5_000_000)
            async let received: [UInt8] = {
                var received: [UInt8] = []
                while let bytes = try await stream.read() { received += Array(buffer: bytes) }
                return received
            }()
            for start in stride(from: 0, to: data.count, by: 70_001) {
                try await stream.write(ByteBuffer(bytes: data[start..<min(start + 70_001, data.count)]))
            }
            stream.finish()
            #expect(try await received == data)
        }
    }

    @Test func messagesAreReadInBatchesAndInOrder() async throws {
        try await withTwoHosts { dialer, listener in
            let received = Mutex<[Int]>([])
            listener.serve("/count/1.0.0") { stream in
                for try await batch in stream.messages(limit: 2_000) {
                    received.withLock { $0 += batch.map { $0.getInteger(at: $0.readerIndex, as: Int.self) ?? -1 } }
                }
            }
            let stream = try await dialer.openStream(to: listener.peerID, ["/count/1.0.0"])
            for number in 0..<20_000 {
                var message = ByteBuffer(integer: number)
                message.writeRepeatingByte(0, count: number % 1_000)
                try await stream.write(PeerStream.delimited(message))
            }
            stream.finish()
            try await eventually { received.withLock { $0.count } == 20_000 }
            #expect(received.withLock { $0 } == Array(0..<20_000))
        }
    }

    @Test func nobodyIsEvictedForAConnectionThatIsRefused() async throws {
        let evictions = Mutex(0)
        var configuration = HostConfiguration()
        (configuration.inboundLimit, configuration.connectionLimit) = (1, 1)
        configuration.onRefusal = { _ in evictions.withLock { $0 += 1 } }
        try await withTwoHosts(configuration) { dialer, listener in
            try await eventually { listener.connection(to: dialer.peerID) != nil }
            let connection = listener.connection(to: dialer.peerID)
            let address = try #require(dialer.connection(to: listener.peerID)?.remoteAddress)
            let other = Host(key: .generate())
            // Refused after its handshake, which it may learn late.
            if let refused = try? await other.connect(to: address) { await refused.waitUntilClosed() }
            #expect(listener.connection(to: dialer.peerID) === connection && evictions.withLock { $0 } == 0)
            await other.close()
        }
    }

    /// All of them arrive together.
    @Test(arguments: [(0, 10_000, MessageReader.batchLimit), (1_000, 200, 66)])
    func messagesAreReadInShortBatches(byteCount: Int, count: Int, batchCount: Int) async throws {
        try await withTwoHosts { dialer, listener in
            let batches = Mutex<[Int]>([])
            listener.serve("/count/1.0.0") { stream in
                try await eventually { listener.bytesReceived >= byteCount * count }
                for try await batch in stream.messages(limit: 2_000) { batches.withLock { $0.append(batch.count) } }
            }
            let stream = try await dialer.openStream(to: listener.peerID, ["/count/1.0.0"])
            let message = PeerStream.delimited(ByteBuffer(repeating: 0, count: byteCount))
            try await stream.write(ByteBuffer(bytes: repeatElement(Array(buffer: message), count: count).joined()))
            stream.finish()
            try await eventually { batches.withLock { $0.reduce(0, +) } == count }
            #expect(batches.withLock { $0.max() } == batchCount)
        }
    }

    /// Handled as they arrive, except that the task goes on after every thousand.
    @Test func messagesAreHandledInOrder() async throws {
        try await withTwoHosts { dialer, listener in
            let received = Mutex<[Int]>([])
            let pauseCount = Mutex(0)
            let isFinished = Mutex(false)
            listener.serve("/count/1.0.0") { stream in
                var reader = MessageReader(stream, limit: 2_000)
                while try await reader.handleBatches({ batch -> Bool? in
                    received.withLock { received in
                        let before = received.count / 1_000
                        received += batch.map { $0.getInteger(at: $0.readerIndex, as: Int.self) ?? -1 }
                        return received.count / 1_000 > before ? true : nil
                    }
                }) != nil { pauseCount.withLock { $0 += 1 } }
                isFinished.withLock { $0 = true }
            }
            let stream = try await dialer.openStream(to: listener.peerID, ["/count/1.0.0"])
            for number in 0..<20_000 {
                var message = ByteBuffer(integer: number)
                message.writeRepeatingByte(0, count: number % 1_000)
                try await stream.write(PeerStream.delimited(message))
            }
            stream.finish()
            try await eventually { isFinished.withLock(\.self) }
            #expect(received.withLock { $0 } == Array(0..<20_000))
            #expect(pauseCount.withLock { $0 } == 20)
        }
    }

    /// Of several frames in one read the first takes all bytes, and the others find none.
    @Test func aReaderWithoutNewBytesGoesOnWaiting() async throws {
        try await withTwoHosts { dialer, listener in
            let inbound = Mutex<PeerStream?>(nil)
            let batchCount = Mutex(0)
            let hasEnded = Mutex(false)
            listener.serve("/wait/1.0.0") { stream in
                inbound.withLock { $0 = stream }
                await stream.waitForData { _ in
                    batchCount.withLock { count in
                        count += 1
                        return count < 3
                    }
                }
                hasEnded.withLock { $0 = true }
            }
            let stream = try await dialer.openStream(to: listener.peerID, ["/wait/1.0.0"])
            for count in 1...3 {
                try await stream.write(ByteBuffer(bytes: [1]))
                try await eventually { batchCount.withLock { $0 } == count }
                inbound.withLock { $0 }?.wakeReader()
            }
            try await eventually { hasEnded.withLock { $0 } }
        }
    }

    @Test func handledMessagesAreLimited() async throws {
        try await withTwoHosts { dialer, listener in
            let count = Mutex(0)
            let failure = Mutex<(any Error)?>(nil)
            listener.serve("/short/1.0.0") { stream in
                var reader = MessageReader(stream, limit: 10)
                do {
                    _ = try await reader.handleBatches { batch -> Bool? in
                        count.withLock { $0 += batch.count }
                        return nil
                    }
                } catch {
                    failure.withLock { $0 = error }
                }
            }
            let stream = try await dialer.openStream(to: listener.peerID, ["/short/1.0.0"])
            for number in 1...3 {
                try await stream.writeMessage(ByteBuffer(repeating: 0, count: 10))
                try await eventually { count.withLock { $0 } == number }
            }
            try await stream.writeMessage(ByteBuffer(repeating: 0, count: 11))
            try await eventually { failure.withLock { $0 as? ConnectionError } == .messageTooLarge }
            #expect(count.withLock { $0 } == 3)
        }
    }

    /// Far more than the window of a stream.
    @Test func aSourceIsSentInOrder() async throws {
        try await withTwoHosts { dialer, listener in
            let received = Mutex<[Int]>([])
            let left = Mutex(Array(0..<1_000))
            listener.serve("/count/1.0.0") { stream in
                for try await batch in stream.messages(limit: 20_000) {
                    received.withLock { $0 += batch.map { $0.getInteger(at: $0.readerIndex, as: Int.self) ?? -1 } }
                }
            }
            let stream = try await dialer.openStream(to: listener.peerID, ["/count/1.0.0"])
            stream.send {
                guard let number = left.withLock({ $0.isEmpty ? nil : $0.removeFirst() }) else { return nil }
                var message = ByteBuffer(integer: number)
                message.writeRepeatingByte(0, count: 10_000)
                return PeerStream.delimited(message)
            }
            try await eventually { received.withLock { $0.count } == 1_000 }
            left.withLock { $0.append(1_000) }
            stream.announce()
            try await eventually { received.withLock { $0.count } == 1_001 }
            #expect(received.withLock { $0 } == Array(0...1_000))
        }
    }

    @Test func manyStreamsAtOnce() async throws {
        try await withTwoHosts { dialer, listener in
            listener.serve("/double/1.0.0", streamsPerPeer: 100) { stream in
                var reader = MessageReader(stream, limit: 100)
                guard let message = try await reader.next() else { return }
                try await stream.writeMessage(ByteBuffer(bytes: Array(buffer: message) + Array(buffer: message)))
            }
            try await withThrowingTaskGroup(of: Bool.self) { group in
                for number in UInt8(0)..<50 {
                    group.addTask {
                        let answer = try await dialer.request(
                            ByteBuffer(bytes: [number]), to: listener.peerID, "/double/1.0.0", responseLimit: 10, within: .seconds(60))
                        return Array(buffer: answer) == [number, number]
                    }
                }
                for try await isRight in group { #expect(isRight) }
            }
            // No stream remains.
            try await eventually { listener.state.withLock { $0.servedStreams.isEmpty } }
        }
    }

    @Test func aRequestsStreamStaysOpenUntilTheResponse() async throws {
        try await withTwoHosts { dialer, listener in
            let byteCount = 300 * 1024
            let hasEnded = Mutex(false)
            let hadEnded = Mutex<Bool?>(nil)
            listener.serve("/long/1.0.0") { stream in
                var reader = MessageReader(stream, limit: 100)
                _ = try await reader.next()
                var response = ByteBuffer()
                response.writeVarint(UInt64(byteCount))
                response.writeRepeatingByte(1, count: byteCount - 1)
                try await stream.write(response)
                // All of it is sent only after a window update.
                try await eventually { stream.queuedByteCount == 0 }
                let end = Task { @Sendable in
                    _ = try await stream.read()
                    hasEnded.withLock { $0 = true }
                }
                // Takes longer than to read an end that has already come.
                _ = try await listener.ping(stream.peer)
                hadEnded.withLock { $0 = hasEnded.withLock(\.self) }
                try await stream.write(ByteBuffer(bytes: [1]))
                try await end.value
            }
            let response = try await dialer.request(
                ByteBuffer(bytes: [1]), to: listener.peerID, "/long/1.0.0", responseLimit: byteCount, within: .seconds(60))
            #expect(response.readableBytes == byteCount)
            #expect(hadEnded.withLock(\.self) == false)
            try await eventually { hasEnded.withLock(\.self) }
        }
    }

    @Test func unsupportedProtocolsAreRefused() async throws {
        try await withTwoHosts { dialer, listener in
            await #expect(throws: MultistreamError.refused) {
                _ = try await dialer.openStream(to: listener.peerID, ["/none/1.0.0", "/none/2.0.0"])
            }
            await #expect(throws: ConnectionError.notConnected) {
                _ = try await dialer.openStream(to: NodeKey.generate().peerID, ["/none/1.0.0"])
            }
        }
    }

    @Test func streamsOfAProtocolHaveALimit() async throws {
        try await withTwoHosts { dialer, listener in
            echo(listener, streamsPerPeer: 2)
            let one = try await dialer.openStream(to: listener.peerID, ["/echo/1.0.0"])
            let two = try await dialer.openStream(to: listener.peerID, ["/echo/1.0.0"])
            let three = try await dialer.openStream(to: listener.peerID, ["/echo/1.0.0"])
            await #expect(throws: ConnectionError.closedByPeer) { _ = try await three.read() }
            try await one.write(ByteBuffer(string: "a"))
            #expect(try await one.read() == ByteBuffer(string: "a"))
            two.reset()
            try await eventually { listener.state.withLock { $0.servedStreams.count } == 1 }
        }
    }

    @Test func oversizedMessagesResetTheStream() async throws {
        try await withTwoHosts { dialer, listener in
            let failure = Mutex<(any Error)?>(nil)
            listener.serve("/short/1.0.0") { stream in
                do {
                    var reader = MessageReader(stream, limit: 10)
                    _ = try await reader.next()
                } catch {
                    failure.withLock { $0 = error }
                }
            }
            let stream = try await dialer.openStream(to: listener.peerID, ["/short/1.0.0"])
            try await stream.writeMessage(ByteBuffer(repeating: 0, count: 11))
            await #expect(throws: ConnectionError.closedByPeer) { while try await stream.read() != nil {} }
            // The stream is reset before the reader throws.
            try await eventually { failure.withLock { $0 as? ConnectionError } == .messageTooLarge }
        }
    }

    /// Serves messages of up to a MiB; returns a counter of received messages.
    private func serveMessages(_ host: Host) -> @Sendable () -> Int {
        let count = Counter()
        host.serve("/long/1.0.0") { stream in
            for try await batch in stream.messages(limit: 1 << 20) { count.value.withLock { $0 += batch.count } }
        }
        return { count.value.withLock { $0 } }
    }

    private final class Counter: Sendable {
        let value = Mutex(0)
    }

    /// A message without its last byte.
    private func partOfAMessage(_ byteCount: Int) -> ByteBuffer {
        var bytes = PeerStream.delimited(ByteBuffer(repeating: 0, count: byteCount))
        bytes.moveWriterIndex(to: bytes.writerIndex - 1)
        return bytes
    }

    /// One of two dialing peers is marked as needed; both hold incomplete messages.
    @Test func theLeastUsefulPeersAreDisconnectedOverTheMemoryLimit() async throws {
        var configuration = HostConfiguration()
        configuration.inboundMemoryLimit = 2_600_000
        let listener = try await ListeningHost(configuration)
        let (count, memory) = (serveMessages(listener.host), listener.host.memory)
        let hosts = (0..<2).map { _ in Host(key: .generate()) }
        for host in hosts { try await host.connect(to: listener.address) }
        let (needed, other) = (hosts[0], hosts[1])
        try await eventually { listener.host.peers.count { $0.info != nil } == 2 }
        listener.host.rate([needed.peerID: PeerStanding(isNeeded: true)])
        // Connections dialed by the listener do not count towards the budget.
        let dialed = try await ListeningHost()
        try await listener.host.connect(to: dialed.address)
        try await eventually { dialed.host.connection(to: listener.host.peerID) != nil }
        let long = try await dialed.host.openStream(to: listener.host.peerID, ["/long/1.0.0"])
        try await long.write(partOfAMessage(1 << 20))

        let parts = try await needed.openStream(to: listener.host.peerID, ["/long/1.0.0"])
        try await parts.write(partOfAMessage(1_000_000))
        try await eventually { memory.byteCount >= 1_000_000 }
        let junk = try await other.openStream(to: listener.host.peerID, ["/long/1.0.0"])
        try await junk.write(partOfAMessage(900_000))
        try await eventually { memory.byteCount >= 1_900_000 }
        #expect(listener.host.peers.count == 3)
        // A further incomplete message exceeds the limit: the needed peer stays, although the message is its own.
        let more = try await needed.openStream(to: listener.host.peerID, ["/long/1.0.0"])
        try await more.write(partOfAMessage(1_000_000))
        await #expect(throws: (any Error).self) { while try await junk.read() != nil {} }
        try await eventually { Set(listener.host.peers.map(\.connection.peer)) == [needed.peerID, dialed.host.peerID] }
        for stream in [parts, more, long] { try await stream.write(ByteBuffer(bytes: [0])) }
        try await eventually { count() == 3 }
        await needed.close()
        try await eventually { memory.byteCount == 0 }
        for host in [other, dialed.host, listener.host] { await host.close() }
    }

    /// What waits for peers is freed first. A connection is closed for what is left.
    @Test func whatWaitsForPeersCountsTowardsMemory() async throws {
        var configuration = HostConfiguration()
        configuration.inboundMemoryLimit = 1_000_000
        try await withTwoHosts(configuration) { dialer, listener in
            try await eventually { listener.peers.first?.info != nil }
            // What can't be freed.
            let (peer, rest) = (dialer.peerID, Counter())
            listener.freeMemory { [weak listener] _, _ in
                rest.value.withLock { left in
                    if let listener { listener.charge(left - listener.shared.byteCount) }
                    return [peer: left]
                }
            }
            listener.charge(1_500_000)
            try await eventually { listener.shared.byteCount == 0 }
            _ = try await dialer.ping(listener.peerID)
            #expect(listener.peers.count == 1)
            rest.value.withLock { $0 = 1_200_000 }
            listener.charge(1_500_000)
            try await eventually { listener.peers.isEmpty && listener.shared.byteCount == 1_200_000 }
            listener.charge(-1_200_000)
            try await eventually { listener.memory.byteCount == 0 }
        }
    }

    /// Identify information counts while the peer is connected; data that the peer or the service does not read counts as well.
    @Test func identifyInfoCountsTowardsMemory() async throws {
        try await withTwoHosts { dialer, listener in
            try await eventually { listener.peers.first?.info != nil }
            let mayRead = AsyncStream.makeStream(of: Void.self)
            listener.serve("/slow/1.0.0") { stream in
                for await _ in mayRead.stream { break }
                while try await stream.read() != nil {}
            }
            let before = listener.memory.byteCount
            var info = PeerInfo()
            info.protocols = (0..<200).map { "/\($0)/" + String(repeating: "a", count: 200) }
            let push = try await dialer.openStream(to: listener.peerID, [Identify.pushID])
            try await push.writeMessage(ByteBuffer(bytes: info.encoded()))
            push.finish()
            try await eventually { listener.peers.first?.info?.protocols.count == 200 && listener.memory.byteCount - before >= 40_000 }
            let stream = try await dialer.openStream(to: listener.peerID, ["/slow/1.0.0"])
            try await stream.write(ByteBuffer(repeating: 0, count: 200_000))
            try await eventually { listener.memory.byteCount - before >= 240_000 }
            mayRead.continuation.finish()
            try await eventually { listener.memory.byteCount - before < 100_000 }
            await dialer.close()
            try await eventually { listener.memory.byteCount == 0 }
        }
    }

    /// Neither a message that can't be parsed nor a reset lets a peer push again at once.
    @Test(arguments: [true, false]) func identifyPushesArePaced(isValid: Bool) async throws {
        var configuration = HostConfiguration()
        configuration.pushPause = .seconds(3600)
        try await withTwoHosts(configuration) { dialer, listener in
            try await eventually { listener.peers.first?.info != nil }
            for number in 0..<8 {
                let push = try await dialer.openStream(to: listener.peerID, [Identify.pushID])
                var info = PeerInfo()
                info.agentVersion = "\(number)"
                try await push.writeMessage(ByteBuffer(bytes: isValid ? info.encoded() : [0xFF]))
                if isValid {
                    try await eventually { listener.peers.first?.info?.agentVersion == "\(number)" }
                    push.reset()
                } else {
                    await #expect(throws: ConnectionError.closedByPeer) { _ = try await push.read() }
                }
            }
            // After the resets.
            _ = try await dialer.ping(listener.peerID)
            let further = try await dialer.openStream(to: listener.peerID, [Identify.pushID])
            var info = PeerInfo()
            info.agentVersion = "further"
            try? await further.writeMessage(ByteBuffer(bytes: info.encoded()))
            await #expect(throws: ConnectionError.closedByPeer) { _ = try await further.read() }
            #expect(listener.peers.first?.info?.agentVersion != "further")
        }
    }

    @Test func incompleteLongMessagesTimeOut() async throws {
        var configuration = HostConfiguration()
        configuration.partialMessageTimeout = .milliseconds(100)
        try await withTwoHosts(configuration) { dialer, listener in
            _ = serveMessages(listener)
            let small = try await dialer.openStream(to: listener.peerID, ["/long/1.0.0"])
            try await small.write(partOfAMessage(MessageReader.smallMessage))
            let long = try await dialer.openStream(to: listener.peerID, ["/long/1.0.0"])
            try await long.write(partOfAMessage(1 << 20))
            await #expect(throws: ConnectionError.closedByPeer) { _ = try await long.read() }
            try await eventually { listener.memory.byteCount < 1 << 20 }
            #expect(!small.isClosed)
        }
    }

    @Test func versionsOfAProtocolShareTheirStreamLimit() async throws {
        try await withTwoHosts { dialer, listener in
            listener.serve(["/two/2.0.0", "/two/1.0.0"], streamsPerPeer: 2) { stream in
                while let bytes = try await stream.read() { try await stream.write(bytes) }
            }
            for id in ["/two/1.0.0", "/two/2.0.0"] {
                let stream = try await dialer.openStream(to: listener.peerID, [id])
                try await stream.write(ByteBuffer(string: "a"))
                #expect(try await stream.read() == ByteBuffer(string: "a"))
            }
            let third = try await dialer.openStream(to: listener.peerID, ["/two/1.0.0"])
            await #expect(throws: ConnectionError.closedByPeer) { _ = try await third.read() }
        }
    }

    @Test func aSlowReaderSlowsTheWriter() async throws {
        try await withTwoHosts { dialer, listener in
            let mayRead = AsyncStream.makeStream(of: Void.self)
            let count = Mutex(0)
            listener.serve("/slow/1.0.0") { stream in
                for await _ in mayRead.stream { break }
                while let bytes = try await stream.read() { count.withLock { $0 += bytes.readableBytes } }
            }
            let stream = try await dialer.openStream(to: listener.peerID, ["/slow/1.0.0"])
            var written = 0
            let piece = ByteBuffer(repeating: 1, count: 10_000)
            // A window and a queue are filled: then no more data is accepted.
            try await eventually {
                while stream.queuedByteCount <= PeerStream.queueLimit - 10_000 {
                    try await stream.write(piece)
                    written += 10_000
                }
                return written > 256_000 + PeerStream.queueLimit - 20_000
            }
            #expect(written <= 256_000 + PeerStream.queueLimit)
            mayRead.continuation.finish()
            stream.finish()
            try await eventually { count.withLock { $0 } == written }
        }
    }

    @Test func aCancelledReaderAndWriterReturn() async throws {
        try await withTwoHosts { dialer, listener in
            listener.serve("/silent/1.0.0") { stream in
                try await Task.sleep(for: .seconds(600))
                _ = stream
            }
            let stream = try await dialer.openStream(to: listener.peerID, ["/silent/1.0.0"])
            let reader = Task { try await stream.read() }
            let writer = Task { while true { try await stream.write(ByteBuffer(repeating: 0, count: 50_000)) } }
            try await eventually { stream.queuedByteCount >= PeerStream.queueLimit / 2 }
            reader.cancel()
            writer.cancel()
            await #expect(throws: CancellationError.self) { _ = try await reader.value }
            await #expect(throws: CancellationError.self) { try await writer.value }
        }
    }

    @Test func aDeadlineResetsAStream() async throws {
        try await withTwoHosts { dialer, listener in
            listener.serve("/silent/1.0.0") { stream in while try await stream.read() != nil {} }
            let stream = try await dialer.openStream(to: listener.peerID, ["/silent/1.0.0"])
            stream.endAfter(.milliseconds(10))
            await #expect(throws: ConnectionError.timedOut) { _ = try await stream.read() }
            #expect(stream.isClosed)
            await #expect(throws: ConnectionError.timedOut) { try await stream.write(ByteBuffer(bytes: [1])) }
        }
    }

    @Test func eventsReportConnectionsAndDisconnections() async throws {
        let listener = try await ListeningHost()
        let dialer = Host(key: .generate())
        let events = listener.host.events()
        try await dialer.connect(to: listener.address)
        try await eventually { listener.host.peers.first?.info != nil }
        await dialer.close()
        try await eventually { listener.host.peers.isEmpty }
        await listener.host.close()
        var story: [String] = []
        for await event in events {
            switch event {
            case .connected(let connection): story.append(connection.isInbound && connection.peer == dialer.peerID ? "connected" : "?")
            case .identified(let peer, _): story.append(peer == dialer.peerID ? "identified" : "?")
            case .notIdentified: story.append("not identified")
            case .disconnected(let peer, _): story.append(peer == dialer.peerID ? "disconnected" : "?")
            }
        }
        #expect(story == ["connected", "identified", "disconnected"])
        await #expect(throws: ConnectionError.closed) { try await dialer.connect(to: listener.address) }
    }

    /// Cancelling a consumer runs the stream's termination handler synchronously. If the handler waited for the host's lock, cancelling while
    /// the lock is held would deadlock; so would yielding an event under the lock to a task that is being cancelled.
    @Test(.timeLimit(.minutes(5))) func cancellingAConsumerOfEventsDoesNotWaitForTheHostsLock() async throws {
        let host = Host(key: .generate())
        for _ in 0..<20 {
            let consumer = Task {
                for await _ in host.events() {}
            }
            try await eventually { host.state.withLock { $0.subscribers.count } == 1 }
            let canceller = Canceller()
            // On a thread of its own: a deadlock must fail the test, not block a thread of the pool.
            Thread.detachNewThread {
                host.state.withLock { _ in consumer.cancel() }
                canceller.isDone.store(true, ordering: .releasing)
            }
            try await eventually(within: .seconds(10)) { canceller.isDone.load(ordering: .acquiring) }
            await consumer.value
            try await eventually { host.state.withLock { $0.subscribers.isEmpty } }
        }
        await host.close()
    }

    private final class Canceller: Sendable {
        let isDone = Atomic(false)
    }

    @Test func laterSubscribersStartWithTheConnectedPeers() async throws {
        try await withTwoHosts { dialer, listener in
            try await eventually { dialer.peers.first?.info != nil }
            var first: [String] = []
            for await event in dialer.events() {
                switch event {
                case .connected: first.append("connected")
                case .identified: first.append("identified")
                default: first.append("?")
                }
                if first.count == 2 { break }
            }
            #expect(first == ["connected", "identified"])
            _ = listener
        }
    }

    @Test func theEndOfAConnectionEndsItsStreams() async throws {
        try await withTwoHosts { dialer, listener in
            echo(listener)
            let stream = try await dialer.openStream(to: listener.peerID, ["/echo/1.0.0"])
            listener.disconnect(dialer.peerID)
            await #expect(throws: ConnectionError.self) { while try await stream.read() != nil {} }
            try await eventually { dialer.peers.isEmpty && listener.peers.isEmpty }
        }
    }

    @Test func anotherPeerThanTheExpectedIsRefused() async throws {
        let listener = try await ListeningHost()
        let dialer = Host(key: .generate())
        await #expect(throws: NoiseError.unexpectedPeer(listener.host.peerID)) {
            try await dialer.connect(to: listener.address.with(NodeKey.generate().peerID))
        }
        #expect(dialer.peers.isEmpty)
        try await eventually { listener.host.state.withLock { $0.inbound.count } == 0 }
        await dialer.close()
        await listener.host.close()
    }

    @Test func unsupportedAddressesAreRefused() async throws {
        let host = Host(key: .generate())
        await #expect(throws: DialError.unsupportedAddress) { try await host.connect(to: Multiaddr("/ip4/127.0.0.1")) }
        await #expect(throws: DialError.unsupportedAddress) { try await host.listen(on: Multiaddr("/dns4/localhost/tcp/0")) }
        await #expect(throws: DialError.unresolved) { try await host.connect(to: Multiaddr("/dns4/name.invalid/tcp/1")) }
        await #expect(throws: (any Error).self) { try await host.connect(to: Multiaddr("/ip4/127.0.0.1/tcp/1")) }
        await host.close()
    }

    @Test func namesAreLookedUp() async throws {
        let listener = try await ListeningHost()
        let dialer = Host(key: .generate())
        let port = try #require(listener.address.endpoint).port
        try await dialer.connect(to: Multiaddr("/dns4/localhost/tcp/\(port)").with(listener.host.peerID))
        #expect(dialer.peers.count == 1)
        await dialer.close()
        await listener.host.close()
    }

    @Test(.timeLimit(.minutes(2))) func anAddressThatDoesNotAnswerDoesNotDelayTheNextOne() async throws {
        let listener = try await ListeningHost()
        var configuration = HostConfiguration()
        configuration.connectTimeout = .hours(1)
        let dialer = Host(key: .generate(), configuration: configuration)
        let silent = try SilentPort()
        let port = try #require(listener.address.endpoint).port
        let targets = try [silent.number, port].map { try SocketAddress(ipAddress: "127.0.0.1", port: Int($0)) }
        let connection = try await dialer.dial(targets, listener.address)
        #expect(connection.peer == listener.host.peerID)
        await dialer.close()
        await listener.host.close()
    }

    @Test func afterANodeWithAnotherIdTheNextAddressIsDialed() async throws {
        let (other, listener) = (try await ListeningHost(), try await ListeningHost())
        let dialer = Host(key: .generate())
        let targets = try [other, listener].map {
            try SocketAddress(ipAddress: "127.0.0.1", port: Int(try #require($0.address.endpoint).port))
        }
        let connection = try await dialer.dial(targets, listener.address)
        #expect(connection.peer == listener.host.peerID)
        await #expect(throws: NoiseError.unexpectedPeer(other.host.peerID)) {
            try await dialer.dial([targets[0]], Multiaddr("/dns/localhost/tcp/1").with(NodeKey.generate().peerID))
        }
        let refusing = [try ReservedPort(), try ReservedPort()]
        let refused = try refusing.map { try SocketAddress(ipAddress: "127.0.0.1", port: Int($0.number)) }
        // The reason of one address, not a list of all.
        await #expect(throws: IOError.self) { try await dialer.dial(refused, Multiaddr("/dns/localhost/tcp/1")) }
        withExtendedLifetime(refusing) {}
        await dialer.close()
        for host in [other.host, listener.host] { await host.close() }
    }

    @Test func aHostDoesNotConnectToItself() async throws {
        let listener = try await ListeningHost()
        await #expect(throws: (any Error).self) { try await listener.host.connect(to: listener.address) }
        #expect(listener.host.peers.isEmpty)
        await listener.host.close()
    }

    @Test func oneConnectionPerPeerIsKeptWhenBothDial() async throws {
        for _ in 0..<10 {
            let (one, other) = (try await ListeningHost(), try await ListeningHost())
            async let first = one.host.connect(to: other.address)
            async let second = other.host.connect(to: one.address)
            async let third = one.host.connect(to: other.address)
            _ = try? await (first, second, third)
            try await eventually {
                let (mine, theirs) = (one.host.peers, other.host.peers)
                return mine.count == 1 && theirs.count == 1 && mine[0].connection.isInbound != theirs[0].connection.isInbound
            }
            #expect(try await one.host.ping(other.host.peerID) > .zero)
            #expect(try await other.host.ping(one.host.peerID) > .zero)
            await one.host.close()
            await other.host.close()
        }
    }

    @Test func connectionsHaveALimit() async throws {
        var configuration = HostConfiguration()
        configuration.inboundLimitPerBlock = 2
        let listener = try await ListeningHost(configuration)
        let hosts = (0..<3).map { _ in Host(key: .generate()) }
        for host in hosts.prefix(2) { try await host.connect(to: listener.address) }
        await #expect(throws: (any Error).self) { try await hosts[2].connect(to: listener.address) }
        await hosts[0].close()
        try await eventually { listener.host.peers.count == 1 }
        try await hosts[2].connect(to: listener.address)
        for host in hosts { await host.close() }
        await listener.host.close()
    }

    /// Idle peers fill all slots: new connections are accepted nevertheless, and useful peers are kept.
    @Test func idlePeersAreEvictedForNewOnes() async throws {
        var configuration = HostConfiguration()
        configuration.inboundLimit = 3
        let listener = try await ListeningHost(configuration)
        let hosts = (0..<5).map { _ in Host(key: .generate()) }
        for host in hosts.prefix(3) {
            try await host.connect(to: listener.address)
            try await eventually { listener.host.connection(to: host.peerID) != nil }
        }
        listener.host.rate([hosts[0].peerID: PeerStanding(isNeeded: true)])
        for (index, host) in hosts.enumerated().dropFirst(3) {
            try await host.connect(to: listener.address)
            let expected = Set([hosts[0], hosts[index - 1], host].map(\.peerID))
            try await eventually { Set(listener.host.peers.map(\.connection.peer)) == expected }
        }
        for host in hosts { await host.close() }
        try await eventually { listener.host.state.withLock { $0.inbound.count } == 0 }
        await listener.host.close()
    }

    @Test func halfOpenConnectionsAreDisplacedByThoseOfOtherBlocks() async throws {
        var configuration = HostConfiguration()
        configuration.handshakeLimit = 4
        // The half-open connections must not time out on a slow machine.
        configuration.stepTimeout = .minutes(5)
        configuration.exemptAddresses = AddressRange.loopback
        let listener = try await ListeningHost(configuration)
        let endpoint = try #require(listener.address.endpoint)
        var sockets: [any Channel] = []
        let address = try SocketAddress(ipAddress: "127.0.0.1", port: Int(endpoint.port))
        for from in ["127.0.7.1", "127.0.7.1", "127.0.7.2", "127.0.8.1"] {
            sockets.append(
                try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                    .bind(to: SocketAddress(ipAddress: from, port: 0)).connect(to: address).get())
        }
        // Exempt handshakes are not displaced, so that there is no slot for another one.
        try await eventually { listener.host.state.withLock { $0.inbound.handshakeCount } == 4 }
        let dialer = Host(key: .generate())
        await #expect(throws: (any Error).self) { try await dialer.connect(to: listener.address) }
        for socket in sockets { try await socket.close() }
        try await eventually { listener.host.state.withLock { $0.inbound.handshakeCount } == 0 }
        await listener.host.close()

        configuration.exemptAddresses = []
        let other = try await ListeningHost(configuration)
        let port = try #require(other.address.endpoint).port
        sockets = []
        for from in ["127.0.7.1", "127.0.7.1", "127.0.7.2", "127.0.8.1"] {
            sockets.append(
                try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                    .bind(to: SocketAddress(ipAddress: from, port: 0))
                    .connect(to: SocketAddress(ipAddress: "127.0.0.1", port: Int(port))).get())
            try await eventually { other.host.state.withLock { $0.inbound.handshakeCount } == sockets.count }
        }
        try await dialer.connect(to: other.address)
        // The oldest handshake of the block with the most handshakes was displaced.
        try await sockets[0].closeFuture.get()
        #expect(sockets.count { $0.isActive } == 3)
        for socket in sockets.dropFirst() { try await socket.close() }
        await dialer.close()
        await other.host.close()
    }

    /// NIO retries at once when there is no file descriptor for a connection. Connections made during the pause are accepted after it.
    @Test func acceptingPausesWhenItFails() async throws {
        let listener = try await ListeningHost()
        let channel = try #require(listener.host.state.withLock { $0.listeners.first?.channel })
        let isReading = try await channel.eventLoop.submit {
            channel.pipeline.fireErrorCaught(IOError(errnoCode: EMFILE, reason: "accept"))
            return try channel.syncOptions?.getOption(.autoRead)
        }.get()
        #expect(isReading == false)
        let dialer = Host(key: .generate())
        try await dialer.connect(to: listener.address)
        #expect(try await channel.getOption(.autoRead).get())
        await dialer.close()
        await listener.host.close()
    }

    @Test func connectionLimitsUseHalfOfTheDescriptorsOfListeners() {
        let configuration = HostConfiguration()
        #expect(configuration.fitted(toDescriptors: 4_096).inboundLimit == 200)
        #expect(configuration.fitted(toDescriptors: 4_096).handshakeLimit == 64)
        for count in [64, DescriptorLimit.minimum, DescriptorLimit.minimum + 100, 500] {
            let fitted = configuration.fitted(toDescriptors: count)
            #expect(fitted.inboundLimit + fitted.handshakeLimit <= DescriptorLimit.forListeners(of: count) / 2)
            #expect(fitted.inboundLimit > 0 && fitted.handshakeLimit > 0)
        }
        #expect(configuration.fitted(toDescriptors: 0).inboundLimit > 0)
    }
}
