// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

import Dispatch
import Foundation
import OperationNetworking
import Synchronization
import TerminalDisplay

/// A downloader for the command line: `opget --help` says what it can do.
@main
struct Opget {
    static func main() {
        // Broken pipes and files that may not grow are errors of the calls that find them.
        signal(SIGPIPE, SIG_IGN)
        signal(SIGXFSZ, SIG_IGN)
        let display = TerminalDisplay()
        let interruption = Interruption(display)
        TerminalSignals.listen(to: [SIGINT, SIGTERM, SIGHUP, SIGTSTP, SIGWINCH]) { interruption.take($0) }
        switch Command(CommandLine.arguments.dropFirst()) {
        case .help: print(HelpText.text, terminator: "")
        case .version: print("opget \(Settings.version)")
        case .refuse(let problems): refuse(problems)
        case .download(let settings): download(settings, display, interruption)
        }
    }

    private static func refuse(_ problems: [String], limit: Int = 20) -> Never {
        for problem in problems.prefix(limit) { say("opget: \(DisplayText.cleaned(problem))") }
        if problems.count > limit { say("opget: and \(problems.count - limit) more") }
        say("Nothing was downloaded. Try 'opget --help'.")
        exit(ExitStatus.usage.rawValue)
    }

    private static func say(_ line: String) { DescriptorOutput.standardError.write(line + "\n") }

    private static func download(_ settings: Settings, _ display: TerminalDisplay, _ interruption: Interruption)
        -> Never
    {
        var reader = ItemReader { url throws(NetworkError) in try Client.request("GET", url, settings) }
        reader.read(settings)
        guard reader.problems.isEmpty else { refuse(reader.problems) }
        var log: RunLog?
        if let place = settings.json {
            log = RunLog(place)
            if log == nil { refuse(["The log cannot be written. Give --json a path in a directory that is there."]) }
        }
        let reporter = Reporter(reader.items, settings, log: log, display: display)
        let runner = Runner(reader.items, Client(settings), reporter)
        interruption.stop { runner.interrupt($0) }
        Task {
            let status = await runner.run()
            exit(status.rawValue)
        }
        // Not dispatchMain(), which lets signals interrupt this thread on Linux.
        while true { pause() }
    }
}

/// What Ctrl-C and its like do: the first one stops in order, the second at once.
private final class Interruption: Sendable {
    private struct State {
        var count = 0
        var stop: (@Sendable (Int32) -> Void)?
    }

    private let display: TerminalDisplay
    private let state = Mutex(State())

    init(_ display: TerminalDisplay) {
        self.display = display
    }

    /// Says how it is stopped in order.
    func stop(_ body: @escaping @Sendable (Int32) -> Void) { state.withLock { $0.stop = body } }

    func take(_ signal: Int32) {
        switch signal {
        case SIGWINCH: display.redraw()
        case SIGTSTP:
            display.stop()
            TerminalSignals.stopProcess()
            display.goOn()
        default:
            let (count, stop) = state.withLock { state in
                state.count += 1
                return (state.count, state.stop)
            }
            guard count == 1, let stop else {
                display.showCursorAtOnce()
                _exit(signal == SIGTERM ? ExitStatus.terminated.rawValue : ExitStatus.interrupted.rawValue)
            }
            stop(signal)
        }
    }
}
