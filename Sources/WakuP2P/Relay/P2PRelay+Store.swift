import Primitives
import GossipSub
import LibP2P
import Logging
import NIOCore
import Synchronization
public import Waku
import WakuCrypto

extension P2PRelay {
    /// Which of these messages a peer's store keeps.
    public func lookUp(_ hashes: [MessageHash]) async throws(RelayError) -> Set<MessageHash> {
        do {
            let page = try await query(StoreQuery(hashes: hashes, includesMessages: false))
            return Set(page.hashes)
        } catch {
            switch error {
            case .noStore: throw RelayError(code: .refused, message: "no peer has a store")
            case .failed(let text, _): throw RelayError(code: .unavailable, message: text)
            }
        }
    }

    enum StoreError: Error {
        case noStore
        case failed(String, isTooMuch: Bool)

        var isTooMuch: Bool {
            if case .failed(_, isTooMuch: true) = self { true } else { false }
        }
    }

    var hasStore: Bool { !stores.isEmpty }

    /// Peers whose store is asked. Of those that dialled this node, none but whom it was told of: anybody can dial, and say that there was nothing.
    var stores: [PeerID] {
        let own = Set(host.peers.lazy.filter { !$0.connection.isInbound }.map(\.connection.peer))
        return peers(speaking: WakuProtocol.store).filter { own.contains($0) || isTold(of: $0) }
    }

    func peers(speaking protocolID: String) -> [PeerID] {
        host.peers.filter { $0.info?.protocols.contains(protocolID) ?? false }.map(\.connection.peer).shuffled()
    }

    /// Of any peer with a store, one after the other until one answers.
    func query(_ query: StoreQuery) async throws(StoreError) -> StorePage {
        var failure = StoreError.noStore
        for peer in stores where !Task.isCancelled {
            do {
                let request = StoreRequest(query, id: RequestID.next())
                let response = try await ask(
                    request.encoded(), of: peer, WakuProtocol.store, limit: WakuProtocol.maximumStoreFrameByteCount, within: .seconds(30),
                    StoreResponse.init(parsing:))
                guard response.status.isSuccess else {
                    failure = .failed("\(response.status)", isTooMuch: false)
                    continue
                }
                return StorePage(
                    messages: response.entries.compactMap(\.message).filter { $0.message.flaw == nil && query.covers($0) },
                    hashes: response.entries.map(\.hash),
                    cursor: response.cursor.map { hexString($0) })
            } catch {
                let isTooMuch = [.messageTooLarge, .timedOut].contains(error as? ConnectionError)
                failure = .failed("\(error)", isTooMuch: isTooMuch)
            }
        }
        throw failure
    }

    /// - Parameter parse: What the answer is.
    func ask<Answer>(
        _ request: [UInt8], of peer: PeerID, _ protocolID: String, limit: Int = WakuProtocol.maximumSmallFrameByteCount,
        within: TimeAmount = .seconds(10), _ parse: ([UInt8]) throws -> Answer
    ) async throws -> Answer {
        let answer = try await host.request(ByteBuffer(bytes: request), to: peer, protocolID, responseLimit: limit, within: within)
        return try parse(Array(answer.readableBytesView))
    }

    // MARK: Catching up

    func catchUp(on index: Int, deliver: @Sendable ([ReceivedMessage]) async -> Void) async {
        var gaps = gaps[index].makeAsyncIterator()
        while !Task.isCancelled {
            switch progress.withLock({ $0.next(on: index, at: .now()) }) {
            case .idle: _ = await gaps.next()
            // In steps, because a reconnection ends the pause.
            case .wait(let until):
                let now = Instant.now
                try? await Task.sleep(for: min(until - now, .seconds(1)))
            case .query(let query): await walk(query, on: index, deliver: deliver)
            }
        }
    }

    private func walk(_ query: StoreQuery, on index: Int, deliver: @Sendable ([ReceivedMessage]) async -> Void) async {
        do throws(StoreError) {
            let page = try await self.query(query)
            let fresh = progress.withLock { $0.fresh(page.messages, on: index) }
            if !fresh.isEmpty {
                configuration.report(.recovered(fresh.count))
                await deliver(fresh)
            }
            guard !Task.isCancelled, let summary = progress.withLock({ $0.answered(page, on: index) }) else { return }
            logger.info(
                "caught up from the store",
                metadata: [
                    "topic": "\(configuration.pubsubTopics[index])", "messages": "\(summary.messageCount)", "pages": "\(summary.pageCount)",
                    "cut-short": "\(summary.isCutShort)",
                ])
        } catch {
            guard !Task.isCancelled,
                progress.withLock({ $0.failed(on: index, isTooMuch: error.isTooMuch, at: .now(), jitter: .random(in: 0...1)) })
            else { return }
            logger.warning(
                "no store can be asked, messages may be missing",
                metadata: ["topic": "\(configuration.pubsubTopics[index])", "reason": "\(error)"])
        }
    }
}

extension StoreRequest {
    init(_ query: StoreQuery, id: String) {
        self.init(
            requestID: id, includesMessages: query.includesMessages, pubsubTopic: query.pubsubTopic, contentTopics: query.contentTopics,
            startTime: query.startTime, endTime: query.endTime, hashes: query.hashes,
            cursor: query.cursor.flatMap { bytes(hex: $0) }, pageSize: UInt64(query.pageSize))
    }
}

/// Names a request, so that its answer can be told from another's: random, because it tells nothing then.
enum RequestID {
    static func next() -> String { hexString(randomBytes(16)) }
}
