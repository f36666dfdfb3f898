package import Core
package import NodeAPI
import NodeMetrics
package import RateLimits
package import StatusProtocol
import Synchronization
package import WakuCrypto

/// Reassembles the segmented messages to one identity, and reports displaced segments to the limits.
package final class SegmentReassembly: Sendable {
    private let assembler: Mutex<SegmentAssembler>
    private let limiter: RateLimits

    package init(limits: SegmentAssembler.Limits, limiter: RateLimits) {
        assembler = Mutex(SegmentAssembler(limits: limits))
        self.limiter = limiter
    }

    /// The message that a segment completes.
    package func message(
        completedBy segment: SegmentMessage, from signer: PublicKey, isKnown: Bool = false, sentAt: Timestamp, at now: Timestamp
    ) throws(Drop) -> (bytes: [UInt8], whole: ReassembledMessage) {
        let (added, displaced) = assembler.withLock { assembler in
            let before = assembler.displacedCount
            let added = assembler.add(segment, from: signer, isKnown: isKnown, sentAt: sentAt, at: now)
            return (added, assembler.displacedCount - before)
        }
        limiter.displaced(.segments, isKnown ? .known : .stranger, count: displaced)
        guard let whole = added else { throw Drop(.segment, segmentOf: segment.wholeHash) }
        return (whole.bytes, ReassembledMessage(whole.bytes, announced: segment.wholeHash, sentAt: whole.sentAt))
    }
}

/// Decodes with the first identity that can decrypt the message.
///
/// - Parameters:
///   - owners: the indices of the identities that the topic belongs to; if there are none, the first identity tries.
///   - decode: receives the index, and whether it is the last one.
package func decode<Message>(
    asFirstOf owners: [Int], _ decode: (_ owner: Int, _ isLast: Bool) throws(Drop) -> Message
) throws(Drop) -> Message {
    for owner in owners.dropLast() {
        do throws(Drop) {
            return try decode(owner, false)
        } catch {
            guard error.counter == .droppedUndecryptable else { throw error }
        }
    }
    return try decode(owners.last ?? 0, true)
}
