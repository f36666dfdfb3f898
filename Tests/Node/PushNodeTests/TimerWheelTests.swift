import TestSupport
import Testing

@testable import PushNode

@Suite struct TimerWheelTests {
    @Test func elementsAreNeverEarlyAndAtMostOneSlotLate() {
        var generator = SeededGenerator(seed: 7)
        var wheel = TimerWheel<Duration>(width: .milliseconds(10), horizon: .milliseconds(500))
        var now = Duration.seconds(3)
        var added = 0
        var taken = 0
        for _ in 0..<20_000 {
            now += .microseconds(Int.random(in: 0...3_000, using: &generator))
            for due in wheel.take(at: now) {
                taken += 1
                #expect(due <= now)
                // Taken at the first look after the end of its slot.
                #expect(now - due <= .milliseconds(10) + .microseconds(3_000))
            }
            let due = now + .microseconds(Int.random(in: 1...500_000, using: &generator))
            wheel.add(due, due: due, at: now)
            added += 1
            #expect(wheel.count == added - taken)
        }
        taken += wheel.take(at: now + .seconds(1)).count
        #expect(taken == added && wheel.isEmpty)
    }

    /// On a busy machine, answers are added faster than due ones are released.
    @Test func elementsThatAreAddedWhileTheWheelLagsAreNotEarly() {
        var wheel = TimerWheel<Int>(width: .milliseconds(10), horizon: .milliseconds(100))
        wheel.add(1, due: .milliseconds(50), at: .zero)
        for number in 2...4 {
            let now = Duration.milliseconds(number * 100)
            wheel.add(number, due: now + .milliseconds(95), at: now)
        }
        #expect(wheel.count == 4)
        #expect(wheel.take(at: .milliseconds(400)) == [1, 2, 3])
        #expect(wheel.take(at: .milliseconds(490)).isEmpty)
        #expect(wheel.take(at: .milliseconds(500)) == [4])
        #expect(wheel.isEmpty)
    }

    @Test func elementsBeyondTheHorizonAreTakenAtTheHorizon() {
        var wheel = TimerWheel<Int>(width: .milliseconds(10), horizon: .milliseconds(100))
        wheel.add(1, due: .seconds(60), at: .zero)
        #expect(wheel.take(at: .milliseconds(90)).isEmpty)
        #expect(wheel.take(at: .milliseconds(130)) == [1])
    }

    @Test func aLongPauseLosesNothing() {
        var wheel = TimerWheel<Int>(width: .milliseconds(10), horizon: .milliseconds(50))
        wheel.add(1, due: .milliseconds(20), at: .zero)
        #expect(wheel.take(at: .seconds(1_000)) == [1])
        wheel.add(2, due: .seconds(1_000) + .milliseconds(30), at: .seconds(1_000))
        #expect(wheel.take(at: .seconds(1_000) + .milliseconds(20)).isEmpty)
        #expect(wheel.take(at: .seconds(1_000) + .milliseconds(30)) == [2])
    }
}
