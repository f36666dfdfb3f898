import StatusProtocol
import TestSupport
import Testing
import Core
import WakuCrypto

@Suite struct SegmentTests {
    private static let signer = PrivateKey.generate().publicKey
    private static let other = PrivateKey.generate().publicKey
    private static let start = Timestamp(rawValue: 1_700_000_000_000_000_000)

    private static func segments(of whole: [UInt8], count: Int) -> [SegmentMessage] {
        let size = (whole.count + count - 1) / count
        return (0..<count).map { index in
            let payload = Array(whole.dropFirst(index * size).prefix(size))
            return SegmentMessage(wholeHash: Keccak256.hash(whole), index: index, count: count, payload: payload)
        }
    }

    private static func whole(_ seed: UInt64, count: Int = 100) -> [UInt8] {
        var generator = SeededGenerator(seed: seed)
        return generator.bytes(count)
    }

    @Test func recordedSegmentsMakeTheirWhole() throws {
        let recorded = StatusGoVectors.recorded.messages.compactMap(\.segment?.bytes)
        try #require(recorded.count == 2)
        var assembler = SegmentAssembler()
        let first = try #require(SegmentMessage(parsing: recorded[0]))
        let second = try #require(SegmentMessage(parsing: recorded[1]))
        #expect(first.index == 0 && second.index == 1 && first.count == 2)
        #expect(first.encoded() == recorded[0] && second.encoded() == recorded[1])
        #expect(assembler.add(first, from: Self.signer, at: Self.start) == nil)
        let completed = assembler.add(second, from: Self.signer, at: Self.start)
        let whole = try #require(completed?.bytes)
        #expect(Keccak256.hash(whole) == first.wholeHash)
        #expect(try MetadataEnvelope(parsing: whole, wakuSigner: Self.signer).kind == .registration)
    }

    @Test func anEnvelopeIsNoSegment() {
        let envelopes = StatusGoVectors.recorded.messages.compactMap(\.applicationMetadata?.bytes.bytes)
        #expect(envelopes.count > 150)
        #expect(envelopes.allSatisfy { SegmentMessage(parsing: $0) == nil })
        #expect(SegmentMessage(parsing: SegmentMessage(wholeHash: [1], index: 0, count: 2, payload: []).encoded()) == nil)
    }

    /// Anyone can publish on the topics that a client receives on.
    @Test func segmentsOfStrangersTakeAtMost16MiBOfAClientsMemory() {
        var assembler = SegmentAssembler(limits: .answers)
        let payload = [UInt8](repeating: 1, count: 1 << 20)
        for number in 0..<20 as Range<UInt8> {
            let hash = [UInt8](repeating: number, count: Keccak256.byteCount)
            let segment = SegmentMessage(wholeHash: hash, index: 0, count: 2, payload: payload)
            #expect(assembler.add(segment, from: PrivateKey.generate().publicKey, at: Self.start) == nil)
        }
        #expect(assembler.count == 15)
    }

    @Test func segmentsComeInAnyOrder() throws {
        let whole = Self.whole(1)
        let segments = Self.segments(of: whole, count: 4)
        var assembler = SegmentAssembler()
        for index in [2, 0, 3] { #expect(assembler.add(segments[index], from: Self.signer, at: Self.start) == nil) }
        #expect(assembler.add(segments[1], from: Self.signer, at: Self.start)?.bytes == whole)
    }

    /// Independent of the order of segments, so that all nodes get the same time.
    @Test func theWholeWasSentWithItsFirstSegment() {
        let segments = Self.segments(of: Self.whole(3), count: 3)
        for order in [[0, 1, 2], [2, 0, 1], [1, 2, 0]] {
            var assembler = SegmentAssembler()
            var sent: [Timestamp?] = []
            for index in order {
                let time = Self.start + .seconds(index)
                sent.append(assembler.add(segments[index], from: Self.signer, sentAt: time, at: Self.start + .seconds(9))?.sentAt)
            }
            #expect(sent == [nil, nil, Self.start])
        }
    }

    @Test func aDuplicateChangesNothing() {
        let whole = Self.whole(2)
        let segments = Self.segments(of: whole, count: 3)
        var assembler = SegmentAssembler()
        for index in [0, 0, 1, 1, 0] { #expect(assembler.add(segments[index], from: Self.signer, at: Self.start) == nil) }
        // Another payload for an index that is already received is ignored.
        let forged = SegmentMessage(wholeHash: segments[0].wholeHash, index: 0, count: 3, payload: [9])
        #expect(assembler.add(forged, from: Self.signer, at: Self.start) == nil)
        #expect(assembler.add(segments[2], from: Self.signer, at: Self.start)?.bytes == whole)
    }

    @Test func aWholeThatDoesNotFitItsHashIsThrownAway() {
        let whole = Self.whole(3)
        let segments = Self.segments(of: whole, count: 2)
        let forged = SegmentMessage(wholeHash: segments[0].wholeHash, index: 0, count: 2, payload: [9])
        var assembler = SegmentAssembler()
        #expect(assembler.add(forged, from: Self.signer, at: Self.start) == nil)
        #expect(assembler.add(segments[1], from: Self.signer, at: Self.start) == nil)
        // Reassembly starts again.
        #expect(assembler.add(segments[1], from: Self.signer, at: Self.start) == nil)
        #expect(assembler.add(segments[0], from: Self.signer, at: Self.start)?.bytes == whole)
    }

    @Test func segmentsOfDifferentSignersDoNotMix() {
        let whole = Self.whole(4)
        let segments = Self.segments(of: whole, count: 2)
        let forged = SegmentMessage(wholeHash: segments[0].wholeHash, index: 0, count: 2, payload: [9])
        var assembler = SegmentAssembler()
        #expect(assembler.add(forged, from: Self.other, at: Self.start) == nil)
        #expect(assembler.add(segments[1], from: Self.signer, at: Self.start) == nil)
        #expect(assembler.add(segments[0], from: Self.signer, at: Self.start)?.bytes == whole)
    }

    @Test(arguments: [(0, 0), (0, 1), (2, 2), (9, 2), (0, 257), (0, Int(UInt32.max)), (Int(UInt32.max), 3)])
    func impossibleSegmentPlacesAreRefused(index: Int, count: Int) {
        let segment = SegmentMessage(wholeHash: Keccak256.hash([1]), index: index, count: count, payload: [1])
        var assembler = SegmentAssembler()
        #expect(assembler.add(segment, from: Self.signer, at: Self.start) == nil)
        // Nothing was kept: a message with the same hash and another count can start.
        let halves = Self.segments(of: [1, 2], count: 2)
        #expect(assembler.add(halves[0], from: Self.signer, at: Self.start) == nil)
        #expect(assembler.add(halves[1], from: Self.signer, at: Self.start)?.bytes == [1, 2])
    }

    @Test func anotherCountOrHashLengthIsRefused() {
        let whole = Self.whole(5)
        let two = Self.segments(of: whole, count: 2)
        let three = Self.segments(of: whole, count: 3)
        var assembler = SegmentAssembler()
        #expect(assembler.add(two[0], from: Self.signer, at: Self.start) == nil)
        #expect(assembler.add(three[2], from: Self.signer, at: Self.start) == nil)
        #expect(assembler.add(two[1], from: Self.signer, at: Self.start)?.bytes == whole)
        for hash in [[], Array(two[0].wholeHash.dropLast()), two[0].wholeHash + [0]] {
            for index in 0...1 {
                let segment = SegmentMessage(wholeHash: hash, index: index, count: 2, payload: [1])
                #expect(assembler.add(segment, from: Self.signer, at: Self.start) == nil)
            }
        }
    }

    @Test func aWholeIsForgottenWhenItIsTooOld() {
        let whole = Self.whole(6)
        let segments = Self.segments(of: whole, count: 2)
        var assembler = SegmentAssembler()
        #expect(assembler.add(segments[0], from: Self.signer, at: Self.start) == nil)
        #expect(assembler.add(segments[1], from: Self.signer, at: Self.start + .seconds(300))?.bytes == whole)
        #expect(assembler.add(segments[0], from: Self.signer, at: Self.start) == nil)
        let late = Self.start + .seconds(301)
        #expect(assembler.add(segments[1], from: Self.signer, at: late) == nil)
        // The late segment has started a new reassembly.
        #expect(assembler.add(segments[0], from: Self.signer, at: late)?.bytes == whole)
    }

    @Test(arguments: [(Int.min, false), (1, false), (2, true)]) func aLimitOfSegmentsMayBeAnyNumber(limit: Int, isTaken: Bool) {
        var limits = SegmentAssembler.Limits()
        limits.segmentCount = limit
        var assembler = SegmentAssembler(limits: limits)
        #expect(assembler.add(Self.segments(of: Self.whole(6), count: 2)[0], from: Self.signer, at: Self.start) == nil)
        #expect(assembler.count == (isTaken ? 1 : 0))
    }

    @Test func theOldestWholeGivesWayWhenThereAreTooMany() {
        var limits = SegmentAssembler.Limits()
        limits.wholeCount = 2
        var assembler = SegmentAssembler(limits: limits)
        let wholes = (0..<3).map { Self.whole(10 + $0) }
        for (index, whole) in wholes.enumerated() {
            let time = Self.start + .seconds(index)
            #expect(assembler.add(Self.segments(of: whole, count: 2)[0], from: Self.signer, at: time) == nil)
        }
        let now = Self.start + .seconds(3)
        for index in [1, 2] {
            #expect(assembler.add(Self.segments(of: wholes[index], count: 2)[1], from: Self.signer, at: now)?.bytes == wholes[index])
        }
        #expect(assembler.add(Self.segments(of: wholes[0], count: 2)[1], from: Self.signer, at: now) == nil)
    }

    @Test func theOldestWholeGivesWayWhenThereAreTooManyBytes() {
        var limits = SegmentAssembler.Limits()
        limits.byteCount = 120
        limits.overhead = 0
        var assembler = SegmentAssembler(limits: limits)
        let wholes = (0..<3).map { Self.whole(20 + $0) }
        // 50 bytes each: the third exceeds the limit.
        for (index, whole) in wholes.enumerated() {
            _ = assembler.add(Self.segments(of: whole, count: 2)[0], from: Self.signer, at: Self.start + .seconds(index))
        }
        let now = Self.start + .seconds(3)
        #expect(assembler.add(Self.segments(of: wholes[1], count: 2)[1], from: Self.signer, at: now)?.bytes == wholes[1])
        #expect(assembler.add(Self.segments(of: wholes[2], count: 2)[1], from: Self.signer, at: now)?.bytes == wholes[2])
        #expect(assembler.add(Self.segments(of: wholes[0], count: 2)[1], from: Self.signer, at: now) == nil)
        // Completed messages take no memory any more.
        #expect(assembler.add(Self.segments(of: wholes[0], count: 2)[0], from: Self.signer, at: now)?.bytes == wholes[0])
    }

    /// The attack: memory filled with nearly complete fragments, then tiny wholes at a steady rate. Senders of several segments within seconds are
    /// served throughout.
    @Test func fragmentsOfThrowAwayKeysDoNotPushOutWholesThatGrow() {
        var assembler = SegmentAssembler()
        var answered = 0
        func fragment(_ number: Int, _ time: Timestamp) {
            let fragment = SegmentMessage(
                wholeHash: Keccak256.hash(Self.whole(UInt64(1_000 + number))), index: 0, count: 2,
                payload: [UInt8](repeating: 1, count: number.isMultiple(of: 2) ? 10 : 2_000))
            _ = assembler.add(fragment, from: Self.throwAway[number % Self.throwAway.count], at: time)
        }
        for number in 0..<2_080 { fragment(number, Self.start) }
        for second in 1...16 {
            let whole = Self.whole(UInt64(second), count: 3_000)
            let segments = Self.segments(of: whole, count: 5)
            for (place, segment) in segments.enumerated() {
                for number in 0..<20 { fragment(5_000 + 100 * second + 20 * place + number, Self.start + .seconds(second)) }
                if assembler.add(segment, from: Self.throwAway[second], at: Self.start + .seconds(second))?.bytes == whole { answered += 1 }
            }
        }
        #expect(answered == 16)
    }

    @Test func memoryIsBoundedAndFloodsDisplaceTheLeastRecentlyGrown() {
        var limits = SegmentAssembler.Limits()
        limits.byteCount = 100_000
        var assembler = SegmentAssembler(limits: limits)
        let whole = Self.whole(7, count: 1_000)
        let halves = Self.segments(of: whole, count: 2)
        #expect(assembler.add(halves[0], from: Self.signer, isKnown: true, at: Self.start) == nil)
        for number in 0..<2_000 {
            let fragment = SegmentMessage(wholeHash: Keccak256.hash(Self.whole(UInt64(number))), index: 0, count: 2, payload: [1, 2])
            #expect(assembler.add(fragment, from: Self.throwAway[number % Self.throwAway.count], at: Self.start) == nil)
        }
        #expect(assembler.count <= 100_000 / limits.overhead)
        #expect(assembler.displacedCount > 0)
        // The known signer's memory is not taken by strangers.
        #expect(assembler.add(halves[1], from: Self.signer, isKnown: true, at: Self.start + .seconds(2))?.bytes == whole)
    }

    private static let throwAway = (0..<600).map { _ in PrivateKey.generate().publicKey }

    @Test func aWholeThatBeginsFindsRoomAmongMoreCompleteOnes() {
        var limits = SegmentAssembler.Limits()
        limits.wholeCount = 4
        var assembler = SegmentAssembler(limits: limits)
        for index in 0..<10 {
            let fragment = Self.segments(of: Self.whole(UInt64(index)), count: 2)[0]
            _ = assembler.add(fragment, from: PrivateKey.generate().publicKey, at: Self.start)
        }
        let whole = Self.whole(50)
        let thirds = Self.segments(of: whole, count: 3)
        for third in thirds[..<2] { #expect(assembler.add(third, from: Self.signer, at: Self.start) == nil) }
        #expect(assembler.add(thirds[2], from: Self.signer, at: Self.start)?.bytes == whole)
    }

    @Test func aSignerHasRoomOfItsOwnAndNoMore() {
        let limits = SegmentAssembler.Limits()
        var assembler = SegmentAssembler()
        let honest = Self.whole(8)
        #expect(assembler.add(Self.segments(of: honest, count: 3)[0], from: Self.signer, at: Self.start) == nil)
        for index in 0..<100 {
            let fragment = Self.segments(of: Self.whole(UInt64(100 + index)), count: 2)[0]
            #expect(assembler.add(fragment, from: Self.other, at: Self.start) == nil)
        }
        #expect(assembler.count == 1 + limits.wholeCountBySigner)
        for third in Self.segments(of: honest, count: 3)[1...].dropLast() {
            #expect(assembler.add(third, from: Self.signer, at: Self.start) == nil)
        }
        #expect(assembler.add(Self.segments(of: honest, count: 3)[2], from: Self.signer, at: Self.start)?.bytes == honest)
    }

    @Test func aSignerHasBytesOfItsOwnAndNoMore() {
        var limits = SegmentAssembler.Limits()
        limits.byteCountBySigner = 120
        var assembler = SegmentAssembler(limits: limits)
        let wholes = (0..<3).map { Self.whole(60 + $0) }
        for whole in wholes { _ = assembler.add(Self.segments(of: whole, count: 2)[0], from: Self.signer, at: Self.start) }
        #expect(assembler.count == 2)
        #expect(assembler.add(Self.segments(of: wholes[2], count: 2)[1], from: Self.signer, at: Self.start)?.bytes == wholes[2])
    }

    @Test func aWholeHasAsManyBytesAsItMay() {
        var limits = SegmentAssembler.Limits()
        limits.wholeByteCount = 100
        var assembler = SegmentAssembler(limits: limits)
        for (count, isTaken) in [(100, true), (101, false)] {
            let whole = Self.whole(UInt64(count), count: count)
            let segments = Self.segments(of: whole, count: 2)
            #expect(assembler.add(segments[0], from: Self.signer, at: Self.start) == nil)
            #expect(assembler.add(segments[1], from: Self.signer, at: Self.start)?.bytes == (isTaken ? whole : nil))
        }
    }
}
