"""`make pictures`: the page with recorded demonstrations, a fault and a report, in Chromium."""

import os
import random
import re
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from PIL import Image
from viewer.browser import Browser

PICTURES = Path(__file__).parent / 'pictures'
# Shares of a recording, whose length depends on the load of the machine: when the robot is shown.
ROBOTS = {'krang': 0.36, 'otbot': 0.6, 'pendubot': 0.45, 'planar_2r': 0.5, 'anthropomorphic': 0.5}
SIZE = (1280, 900)  # of the window; the page has 143 pixels less
PAST, STEPS = 0.4, 80  # that a picture shows
FADE = 6.0  # until the scene is fully visible with software rendering [s]
DRAWN = 0.3  # from a change to its picture, with software rendering [s]
START, FRAMES, FRAME_PERIOD = 0.09, 32, 0.15  # of the animation; the period in s
GAP = 0.5  # largest in a recording [s]
WIDTH = 680  # of the animation [pixels]


def main():
    os.environ.setdefault('ROS_AUTOMATIC_DISCOVERY_RANGE', 'LOCALHOST')
    os.environ.setdefault('ROS_DOMAIN_ID', str(random.randint(1, 101)))
    with tempfile.TemporaryDirectory() as folder:
        bags = {robot: record(robot, Path(folder)) for robot in sys.argv[1:] or ROBOTS}
        browser = Browser(f'{folder}/chromium', SIZE)
        try:
            for robot, bag in bags.items():
                picture_of(browser, robot, bag)
            if 'krang' in bags:
                picture_fault(browser)
            if 'planar_2r' in bags:
                picture_report(browser, bags['planar_2r'])
        finally:
            browser.close()


def record(robot, folder):
    """The bag of a demonstration. Slow rendering does not matter to a recording."""
    bag = folder / f'{robot}_bag'
    words = krang('demo', robot, '--picture', f'{folder}/{robot}.png', '--record', str(bag), '--force')
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    return bag


@contextmanager
def page(browser, *words):
    """`krang view` in the browser."""
    view = subprocess.Popen(krang('view', *words), stdout=subprocess.PIPE, text=True)
    try:
        browser.open(re.search(r'http\S+', view.stdout.readline())[0])
        time.sleep(FADE)
        browser.hide_notifications()
        yield
    finally:
        view.terminate()
        view.wait(20)


def picture_of(browser, robot, bag):
    """The page of one robot in motion; of Krang also an animation."""
    with page(browser, robot, '--bag', str(bag)):
        browser.until_text('time [s]')
        browser.until_text('Play')  # the recording has ended
        if robot == 'krang':
            animate(browser)
        else:
            for share in np.linspace(ROBOTS[robot] - PAST, ROBOTS[robot], STEPS):  # for charts and trails
                move(browser, share)
        time.sleep(2 * DRAWN)
        save(browser, f'page_{robot}')


def picture_fault(browser):
    """The page of a running robot after its emergency stop was pressed."""
    words = krang('sim', 'krang', '--control')
    sim = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        with page(browser, 'krang'):
            browser.until_text('Torque follows')
            browser.click('EMERGENCY STOP')
            browser.until_text('the emergency stop is pressed')
            time.sleep(2.0)
            save(browser, 'page_fault')
    finally:
        sim.terminate()
        sim.wait(60)


def picture_report(browser, bag):
    report = bag.with_name('report.html')
    words = krang('validate', bag.name, '--robot', 'planar_2r', '--html', report.name)
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, cwd=bag.parent)
    browser.open(f'file://{report}')
    time.sleep(1.0)
    save(browser, 'report')


def animate(browser):
    frames = []
    for number, share in enumerate(np.linspace(START, ROBOTS['krang'], FRAMES)):
        move(browser, share)
        frames.append(browser.picture())
        print(f'frame {number + 1} of {FRAMES}', end='\r', file=sys.stderr, flush=True)
    height = WIDTH * frames[0].height // frames[0].width
    small = [frame.resize((WIDTH, height), Image.Resampling.LANCZOS) for frame in frames]
    palette = small[FRAMES // 2].quantize(128, Image.Quantize.FASTOCTREE)
    flat = [frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in small]
    duration = round(1000 * FRAME_PERIOD)
    flat[0].save(PICTURES / 'page.gif', save_all=True, append_images=flat[1:], duration=duration, loop=0)


def move(browser, share):
    """Move a recording to a share of its length, until the page shows it."""
    seconds = share * duration(browser)

    def is_moved():
        browser.enter('time [s]', f'{seconds:.2f}')
        time.sleep(DRAWN)
        return abs(shown_time(browser) - seconds) < GAP

    browser.until(is_moved, 'the recording to move')


def duration(browser):
    return float(re.search(r'time \[s\]\s+0\s+([\d.]+)', browser.text)[1])


def shown_time(browser):
    return float(re.search(r'Recording, ([\d.]+) s', browser.text)[1])


def save(browser, name):
    flat = browser.picture().quantize(256, Image.Quantize.MAXCOVERAGE, 3, dither=Image.Dither.NONE)
    flat.save(PICTURES / f'{name}.png', optimize=True)
    print(PICTURES / f'{name}.png', flush=True)


def krang(*words):
    return [sys.executable, '-m', 'krang_dynamics.cli.main', *words]


if __name__ == '__main__':
    main()
