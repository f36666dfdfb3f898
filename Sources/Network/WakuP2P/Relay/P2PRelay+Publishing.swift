import GossipSub
import LibP2P
import NIOCore
public import Waku

extension P2PRelay {
    /// Publishes by gossip, or by lightpush when no gossip peer is on the topic. Confirmed when the message is in a peer's queue, or when a lightpush
    /// node reports that other nodes received it.
    ///
    /// - Throws: `RelayError`: `refused` for an invalid or too large message, `unavailable` when no peer accepts it.
    @discardableResult
    public func publish(_ message: WakuMessage, on pubsubTopic: PubsubTopic) async throws(RelayError) -> Publication {
        if let flaw = message.flaw { throw RelayError(code: .refused, message: flaw) }
        guard !isFilterClient else { return try await push(message, on: pubsubTopic) }
        let (publication, outcome) = driver.publish(message.encoded(), on: pubsubTopic)
        await carryOut(outcome)
        switch publication {
        case .sent, .duplicate: return .confirmed
        case .tooLarge:
            throw RelayError(code: .refused, message: "message is larger than \(configuration.gossip.maximumDataByteCount) bytes")
        case .noPeers: return try await push(message, on: pubsubTopic)
        }
    }

    /// Publishes by lightpush at two peers concurrently, so that one peer alone cannot suppress the message. When a peer refuses, the next is
    /// tried.
    func push(_ message: WakuMessage, on pubsubTopic: PubsubTopic) async throws(RelayError) -> Publication {
        let current = peers(speaking: WakuProtocol.lightpush)
        let old = peers(speaking: WakuProtocol.lightpushOld).filter { !current.contains($0) }
        var remaining = (current.map { ($0, WakuProtocol.lightpush) } + old.map { ($0, WakuProtocol.lightpushOld) })[...]
        var publications: [Publication] = []
        var refusal: RelayError?
        while publications.count < Self.pushCount, !remaining.isEmpty, !Task.isCancelled {
            let next = remaining.prefix(Self.pushCount - publications.count)
            remaining = remaining.dropFirst(next.count)
            for outcome in await push(message, on: pubsubTopic, by: next) {
                switch outcome {
                case .success(let publication): publications.append(publication)
                case .failure(let error): refusal = error.code == .refused ? error : refusal
                }
            }
        }
        if let publication = publications.first { return publications.contains(.confirmed) ? .confirmed : publication }
        throw refusal ?? RelayError(code: .unavailable, message: "no peer is on \(pubsubTopic)")
    }

    private static let pushCount = 2
    /// Clients wait three seconds for an answer.
    private static let pushTimeout = TimeAmount.milliseconds(2500)

    private func push(
        _ message: WakuMessage, on pubsubTopic: PubsubTopic, by peers: ArraySlice<(PeerID, String)>
    ) async -> [Result<Publication, RelayError>] {
        await withTaskGroup(of: Result<Publication, RelayError>.self) { group in
            for (peer, protocolID) in peers {
                group.addTask {
                    do throws(RelayError) {
                        return .success(
                            protocolID == WakuProtocol.lightpush
                                ? try await self.push(message, on: pubsubTopic, by: peer)
                                : try await self.pushOld(message, on: pubsubTopic, by: peer))
                    } catch {
                        return .failure(error)
                    }
                }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
    }

    private func push(_ message: WakuMessage, on pubsubTopic: PubsubTopic, by peer: PeerID) async throws(RelayError) -> Publication {
        let push = LightpushRequest(requestID: RequestID.next(), pubsubTopic: pubsubTopic, message: message)
        let response = try? await request(
            push.encoded(), of: peer, WakuProtocol.lightpush, within: Self.pushTimeout, StatusResponse.init(parsing:))
        guard let response, response.status.isSuccess else {
            let code: RelayError.Code = response?.status.code == 413 ? .refused : .unavailable
            throw RelayError(code: code, message: response.map { "\($0.status)" } ?? "no answer")
        }
        return response.relayPeerCount ?? 0 >= 1 ? .confirmed : .unconfirmed(canBeLookedUp: hasStore)
    }

    private func pushOld(_ message: WakuMessage, on pubsubTopic: PubsubTopic, by peer: PeerID) async throws(RelayError) -> Publication {
        let push = OldLightpushRequest(requestID: RequestID.next(), pubsubTopic: pubsubTopic, message: message)
        let response = try? await request(
            push.encoded(), of: peer, WakuProtocol.lightpushOld, within: Self.pushTimeout, OldLightpushResponse.init(parsing:))
        guard response?.isSuccess == true else {
            throw RelayError(code: .unavailable, message: "not accepted by lightpush")
        }
        return .unconfirmed(canBeLookedUp: hasStore)
    }
}
