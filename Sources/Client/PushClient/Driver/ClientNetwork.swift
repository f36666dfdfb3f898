import StatusProtocol
import Synchronization
import Core
import Waku
import WakuCrypto

/// The result of looking up the advertisements of some registrants in the network's store.
enum ContactCodeLookUp: Sendable {
    case read
    /// None is among the latest messages, and there are more messages than were read.
    case hidden
    /// With `refused` if there is no store.
    case failed(RelayError)
}

/// A client's access to the network: queries the store, encrypts, and decrypts incoming messages.
final class ClientNetwork: Sendable {
    /// How far back a store look-up goes. Devices in use repeat their advertisements every day.
    private static let lookBack = Duration.seconds(30 * 24 * 3600)
    /// Limits of a query: anyone can publish on a contact code topic.
    private static let pageLimit = 20
    private static let byteLimit = 16 << 20
    /// After this many failures in a row, or altogether, the remaining queries are not sent: each takes until the store's time-out.
    private static let failureLimits = (inRow: 2, total: 5)

    let relay: any Relay
    let pubsubTopic: PubsubTopic
    /// Reassembles answers from their segments.
    private let answers = Mutex(SegmentAssembler(limits: .answers))
    /// Reassembles advertisements. Anyone can publish on their topics, which must not displace answers.
    private let advertisements = Mutex(SegmentAssembler(limits: .answers))
    /// The keys of topics on which messages were received or sent, for all contacts of almost any client: deriving one takes about 7 ms, and for
    /// contacts beyond it anyone could cause that with each message.
    private let topicKeys = Mutex(GenerationalCache<String, SymmetricKey>(capacity: 20_000))

    init(relay: any Relay, pubsubTopic: PubsubTopic) {
        self.relay = relay
        self.pubsubTopic = pubsubTopic
    }

    static func contactCodeTopic(_ registrant: PublicKey) -> ContentTopic {
        ContentTopic(TopicTag(of: StatusTopics.contactCode(registrant)))
    }

    /// Looks up the latest messages on the registrants' contact code topics in the network's store.
    ///
    /// - Parameters:
    ///   - deliver: Called with each message and the registrant of its topic, for each query in the order of publication. Returns whether it
    ///     is an advertisement of the registrant.
    ///   - end: Called for each registrant once, after the query with its topic: it does not wait for the other queries.
    func lookUpContactCodes(
        of registrants: [PublicKey], deliver: @Sendable (WakuMessage, PublicKey) -> Bool,
        end: @Sendable ([PublicKey], ContactCodeLookUp) -> Void
    ) async {
        let topics = registrants.map(Self.contactCodeTopic)
        guard let relay = relay as? any StoreReadingRelay else {
            return end(registrants, .failed(RelayError(code: .refused, message: "there is no store to read")))
        }
        do throws(RelayError) { try await relay.waitUntilWatching(topics) } catch { return end(registrants, .failed(error)) }
        let owners = Dictionary(grouping: registrants, by: Self.contactCodeTopic)
        var queries = StoreQuery.queries(
            pubsubTopics: [pubsubTopic], contentTopics: topics, from: .now() - Self.lookBack, isAscending: false)
        var failureCounts = (inRow: 0, total: 0)
        while let query = queries.popLast() {
            let (messages, isComplete) = await read(query, from: relay)
            let registrants = query.contentTopics.flatMap { owners[$0] ?? [] }
            var found: Set<PublicKey> = []
            // A later advertisement replaces an earlier one.
            for message in messages.sorted(by: { $0.timestamp < $1.timestamp }) {
                for owner in owners[message.contentTopic] ?? [] {
                    if deliver(message, owner) { found.insert(owner) }
                }
            }
            let missing = registrants.filter { !found.contains($0) }
            switch isComplete {
            case .success(let isWhole):
                failureCounts.inRow = 0
                if isWhole {
                    end(registrants, .read)
                } else if query.contentTopics.count == 1 {
                    end(Array(found), .read)
                    end(missing, .hidden)
                } else {
                    // The messages on one topic must not hide the advertisements on the others.
                    for topic in query.contentTopics {
                        var single = query
                        single.contentTopics = [topic]
                        queries.append(single)
                    }
                }
            case .failure(let error):
                end(Array(found), .read)
                failureCounts.inRow += 1
                failureCounts.total += 1
                let isLast = failureCounts.inRow == Self.failureLimits.inRow || failureCounts.total == Self.failureLimits.total
                guard error.code == .refused || isLast else {
                    end(missing, .failed(error))
                    continue
                }
                return end(missing + queries.flatMap(\.contentTopics).flatMap { owners[$0] ?? [] }, .failed(error))
            }
        }
    }

    /// - Returns: The messages that were read, and whether these are all.
    private func read(
        _ query: StoreQuery, from relay: any StoreReadingRelay
    ) async -> (messages: [WakuMessage], isComplete: Result<Bool, RelayError>) {
        var query = query
        var (messages, byteCount): ([WakuMessage], Int) = ([], 0)
        for _ in 0..<Self.pageLimit {
            do throws(RelayError) {
                let page = try await relay.storePage(query)
                messages += page.messages.map(\.message)
                byteCount += page.messages.reduce(0) { $0 + $1.message.payload.count }
                guard let cursor = page.cursor, cursor != query.cursor else { return (messages, .success(true)) }
                guard byteCount < Self.byteLimit else { break }
                query.cursor = cursor
            } catch {
                return (messages, .failure(error))
            }
        }
        return (messages, .success(false))
    }

    private func topicKey(of topic: String) -> SymmetricKey {
        if let key = topicKeys.withLock({ $0.refreshedValue(of: topic) }) { return key }
        let key = KeyDerivation.topicKey(topic)
        topicKeys.withLock { $0.set(key, of: topic) }
        return key
    }

    func seal(_ data: [UInt8], toTopic topic: String, wakuSigner: PrivateKey) -> [WakuMessage] {
        EnvelopeSealing.seal(data, to: .topic(topic, topicKey(of: topic)), wakuSigner: wakuSigner, at: .now())
    }

    /// The data of a message on a registrant's contact code topic, reassembled from its segments, and the signer of the Waku payload; nil when it
    /// can't be decrypted, or is still incomplete.
    func contactCode(in message: WakuMessage, of owner: PublicKey) -> (bytes: [UInt8], signer: PublicKey)? {
        let key = topicKey(of: StatusTopics.contactCode(owner))
        guard let payload = try? EnvelopeSealing.open(message, identity: nil, topicKeys: [key]) else { return nil }
        return Self.bytes(of: payload, advertisements).map { ($0, payload.signer) }
    }

    /// An envelope encrypted to one of the client's keys, reassembled from its segments, and the signer of the Waku payload; nil when it is for
    /// another key, or still incomplete.
    func envelope(in message: WakuMessage, for key: PrivateKey) -> (bytes: [UInt8], signer: PublicKey)? {
        guard let payload = try? EnvelopeSealing.open(message, identity: key) else { return nil }
        return Self.bytes(of: payload, answers).map { ($0, payload.signer) }
    }

    private static func bytes(of payload: OpenedPayload, _ assembler: borrowing Mutex<SegmentAssembler>) -> [UInt8]? {
        guard let segment = payload.segment else { return payload.data }
        return assembler.withLock { $0.add(segment, from: payload.signer, at: .now())?.bytes }
    }
}
