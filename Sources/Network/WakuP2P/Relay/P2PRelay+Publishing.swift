import GossipSub
import LibP2P
import NIOCore
import Synchronization
public import Waku

extension P2PRelay {
    /// Publishes by gossip, or by lightpush when no gossip peer is on the topic. Confirmed when the message is in the queue of a peer that this node
    /// chose, or when a lightpush node reports that other nodes received it.
    ///
    /// - Throws: `RelayError`: `refused` for an invalid or too large message, `unavailable` when no peer accepts it and at least one may later, and after
    ///   ``close()``.
    @discardableResult
    public func publish(_ message: WakuMessage, on pubsubTopic: PubsubTopic) async throws(RelayError) -> Publication {
        if let flaw = message.flaw { throw RelayError(code: .refused, message: flaw) }
        try checkOpen()
        guard !isFilterClient else { return try await push(message, on: pubsubTopic) }
        let (publication, outcome) = driver.publish(message.encoded(), on: pubsubTopic)
        await carryOut(outcome)
        switch publication {
        // Peers that dialed this node may keep it back.
        case .sent: return outcome.chosenRecipientCount > 0 ? .confirmed : .unconfirmed(canBeLookedUp: hasStore)
        case .duplicate: return .confirmed
        case .tooLarge:
            throw RelayError(code: .refused, message: "message is larger than \(configuration.gossip.maximumDataByteCount) bytes")
        case .noPeers: return try await push(message, on: pubsubTopic)
        }
    }

    /// - Throws: `RelayError` with `unavailable`, once the relay was closed.
    func checkOpen() throws(RelayError) {
        guard lockedState.withLock(\.isClosed) else { return }
        throw RelayError(code: .unavailable, message: "the relay was closed: make a new one")
    }

    /// Publishes by lightpush at two peers concurrently, so that one peer alone cannot suppress the message. When a peer refuses or does not answer,
    /// the next is tried. Returns when the first has confirmed it; the other one gets it meanwhile.
    func push(_ message: WakuMessage, on pubsubTopic: PubsubTopic) async throws(RelayError) -> Publication {
        let current = ownPeers(speaking: WakuProtocol.lightpush)
        let old = ownPeers(speaking: WakuProtocol.lightpushOld).filter { !current.contains($0) }
        let order = lockedState.withLock { $0.lightpush.order(current + old) }
        let (outcomes, outcome) = AsyncStream.makeStream(of: Result<Publication, RelayError>.self)
        // In a task of its own: publishing must not wait for a peer that does not answer.
        Task { await push(message, on: pubsubTopic, by: order, speakingOld: Set(old), outcome) }
        var publication: Publication?
        var failure: RelayError?
        for await result in outcomes {
            switch result {
            case .success(.confirmed): return .confirmed
            case .success(let other):
                if publication == nil {
                    Task {
                        try? await Task.sleep(for: Self.confirmationPause)
                        outcome.finish()
                    }
                }
                publication = publication ?? other
            case .failure(let error): if failure?.code != .unavailable { failure = error }
            }
        }
        if let publication { return publication }
        throw failure ?? RelayError(code: .unavailable, message: "no peer is on \(pubsubTopic)")
    }

    private static let pushCount = 2
    /// Clients wait three seconds for an answer, and a stream may be ended up to a second late.
    private static let pushTimeout = TimeAmount.milliseconds(1500)
    /// How long another peer may take to confirm a message that one has accepted without a confirmation.
    private static let confirmationPause = Duration.milliseconds(250)

    /// Has two of these peers accept the message, if that many do. Yields the outcome of each request, and finishes.
    private func push(
        _ message: WakuMessage, on pubsubTopic: PubsubTopic, by peers: [PeerID], speakingOld: Set<PeerID>,
        _ outcome: AsyncStream<Result<Publication, RelayError>>.Continuation
    ) async {
        await withTaskGroup(of: Result<Publication, RelayError>.self) { group in
            var remaining = peers[...]
            func addNext() {
                guard let peer = remaining.popFirst() else { return }
                group.addTask { await self.push(message, on: pubsubTopic, by: peer, isOld: speakingOld.contains(peer)) }
            }
            for _ in 0..<Self.pushCount { addNext() }
            for await result in group {
                outcome.yield(result)
                if case .failure = result { addNext() }
            }
        }
        outcome.finish()
    }

    private func push(
        _ message: WakuMessage, on pubsubTopic: PubsubTopic, by peer: PeerID, isOld: Bool
    ) async -> Result<Publication, RelayError> {
        lockedState.withLock { $0.lightpush.asked(peer) }
        do throws(RelayError) {
            if isOld { return .success(try await pushOld(message, on: pubsubTopic, by: peer)) }
            return .success(try await push(message, on: pubsubTopic, by: peer))
        } catch {
            return .failure(error)
        }
    }

    /// Sends a lightpush request, and records whether the peer answered.
    private func requestPush<Response>(
        _ push: [UInt8], of peer: PeerID, _ protocolID: String, _ parse: ([UInt8]) throws -> Response
    ) async -> Response? {
        let response = try? await request(push, of: peer, protocolID, within: Self.pushTimeout, parse)
        lockedState.withLock { $0.lightpush.finished(peer, isAnswered: response != nil) }
        return response
    }

    private func push(_ message: WakuMessage, on pubsubTopic: PubsubTopic, by peer: PeerID) async throws(RelayError) -> Publication {
        let push = LightpushRequest(requestID: RequestID.next(), pubsubTopic: pubsubTopic, message: message)
        let response = await requestPush(push.encoded(), of: peer, WakuProtocol.lightpush, StatusResponse.init(parsing:))
        guard let response, response.status.isSuccess else {
            // The peer has it from another peer, or relayed it when it was pushed before and the answer was late.
            if response?.status.isAlreadySeen == true { return .unconfirmed(canBeLookedUp: hasStore) }
            let code: RelayError.Code = [413, StatusResponse.invalidMessage].contains(response?.status.code) ? .refused : .unavailable
            throw RelayError(code: code, message: "lightpush at a peer failed: " + (response.map { "\($0.status)" } ?? "no answer"))
        }
        return response.relayPeerCount ?? 0 >= 1 ? .confirmed : .unconfirmed(canBeLookedUp: hasStore)
    }

    private func pushOld(_ message: WakuMessage, on pubsubTopic: PubsubTopic, by peer: PeerID) async throws(RelayError) -> Publication {
        let push = OldLightpushRequest(requestID: RequestID.next(), pubsubTopic: pubsubTopic, message: message)
        let response = await requestPush(push.encoded(), of: peer, WakuProtocol.lightpushOld, OldLightpushResponse.init(parsing:))
        guard response?.isSuccess == true else {
            throw RelayError(code: .unavailable, message: "lightpush at a peer failed: " + (response?.text ?? "no answer"))
        }
        return .unconfirmed(canBeLookedUp: hasStore)
    }
}
